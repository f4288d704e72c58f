/** Publishing, leases and agents, with a real PostgreSQL and agents in one process. */
import { existsSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { DriverError } from '../errors/driver-error.ts';
import { transaction } from '../platform/db.ts';
import { createKeyring } from '../platform/encryption.ts';
import { leaseFileOf } from './part.ts';
import { claimPublishing } from './store.ts';
import { eventually, movableClock, openRegion } from './test-region.ts';

const permanent = (message: string) => new DriverError(message, { customerMessage: message, retryable: false });
const retryable = (message: string) => new DriverError(message, { customerMessage: message, retryable: true });

describe('publishing', () => {
  it('is done when every host serves the state, and when none serves it any more', async (t) => {
    const region = await openRegion(t);
    const hosts = await region.startAll('h1', 'h2', 'h3');
    await Promise.all(['a', 'b', 'c'].map((id) => region.publish(id, { id, secret: 'PRIVATE' })));
    for (const { world } of hosts) expect([...world.keys()].sort()).toEqual(['a', 'b', 'c']);
    await region.publish('a', null);
    for (const { world } of hosts) expect([...world.keys()].sort()).toEqual(['b', 'c']);
    expect(await region.publisher.ids()).toEqual(['b', 'c']);
    expect(await region.publisher.states()).toEqual(new Map(['b', 'c'].map((id) => [id, { id, secret: 'PRIVATE' }])));
    const { rows } = await region.db.$client.query('select id, state from published_states order by id');
    expect(rows.map(({ id }) => id)).toEqual(['b', 'c']);
    expect(rows.some(({ state }) => String(state).includes('PRIVATE'))).toBe(false);
  });

  it('waits for the slowest host', async (t) => {
    const region = await openRegion(t);
    const [h1, h2] = await region.startAll('h1', 'h2');
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    h2!.gate = gate;
    let isDone = false;
    const published = region.publish('a', 1).then(() => (isDone = true));
    await eventually(() => expect(h1!.world.has('a')).toBe(true));
    expect(isDone).toBe(false);
    open();
    await published;
    expect(h2!.world.get('a')).toBe(1);
  });

  it('reports a permanent error to the operator with the name of the host, and applies the next state', async (t) => {
    const region = await openRegion(t);
    const [h1, h2] = await region.startAll('h1', 'h2');
    h2!.failures.set('a', permanent('the port is in use'));
    await expect(region.publish('a', 1)).rejects.toMatchObject({
      message: 'host h2: the port is in use',
      customerMessage: 'the port is in use',
      retryable: false,
    });
    expect(h1!.world.get('a')).toBe(1);
    h2!.failures.clear();
    await region.publish('a', 1);
    expect(h2!.world.get('a')).toBe(1);
  });

  it('of a worker that another one replaced fails, also while the other one begins', async (t) => {
    const region = await openRegion(t);
    const [h1] = await region.startAll('h1');
    await region.publish('a', 'first');
    const { worker: frozen } = region;
    const successor = await region.startWorker();
    await successor.publish('a', 'second');
    const error = { message: 'another worker publishes for region 1', retryable: true };
    await expect(frozen.publish('a', 'late')).rejects.toMatchObject(error);
    await expect(frozen.publish('a', null)).rejects.toMatchObject(error);
    expect(frozen.superseded).toBe(2);
    expect(h1!.world.get('a')).toBe('second');
    const [claimed, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const claiming = transaction(region.db, async (tx) => {
      await claimPublishing(tx, 1);
      claimed.resolve();
      await commit.promise;
    });
    await claimed.promise;
    const late = successor.publish('a', 'late').catch((thrown: unknown) => thrown);
    await eventually(async () => {
      const { rows } = await region.db.$client.query(`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%published_states%'`);
      expect(rows).toHaveLength(1);
    });
    commit.resolve();
    await claiming;
    expect(await late).toMatchObject(error);
    expect(h1!.world.get('a')).toBe('second');
  });

  it('has hosts retry a retryable error by themselves', async (t) => {
    const region = await openRegion(t);
    const [h1] = await region.startAll('h1');
    h1!.failures.set('a', retryable('busy'));
    await expect(region.publish('a', 1)).rejects.toMatchObject({ retryable: true });
    h1!.failures.clear();
    await eventually(() => expect(h1!.world.get('a')).toBe(1));
    await eventually(async () => expect((await region.hosts())[0]!.pendingChanges).toBe(0));
  });

  it('replaces a state that cannot be decrypted, and the others of its batch are published', async (t) => {
    const region = await openRegion(t);
    const [h1] = await region.startAll('h1');
    await region.publish('a', 1);
    await region.db.$client.query(`update published_states set state = '\\x00' where id = 'a'`);
    await Promise.all([region.publish('a', 1), region.publish('b', 2)]);
    expect([...h1!.world].sort()).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
  });

  it('fails without a host, except for a removal', async (t) => {
    const region = await openRegion(t);
    await expect(region.publish('a', 1)).rejects.toMatchObject({ retryable: true, shortage: true });
    await region.publish('a', null);
    await region.publish('unknown', null);
    expect(await region.publisher.ids()).toEqual([]);
  });

  it('ends with its signal', async (t) => {
    const region = await openRegion(t);
    const [h1] = await region.startAll('h1');
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    h1!.gate = gate;
    const ending = new AbortController();
    const published = region.publish('a', 1, ending.signal);
    ending.abort(new Error('the worker is stopping'));
    await expect(published).rejects.toThrow('the worker is stopping');
    open();
  });

  it('reads what hosts report', async (t) => {
    const region = await openRegion(t);
    await region.startAll('h1', 'h2');
    await region.publish('a', 1);
    await eventually(async () =>
      expect(await region.publisher.readings()).toEqual(
        new Map([
          ['h1', ['a']],
          ['h2', ['a']],
        ]),
      ),
    );
  });
});

describe('a host', () => {
  it('converges before it serves: it removes what was removed and serves what was added while it was away', async (t) => {
    const region = await openRegion(t);
    await region.startAll('h1');
    await region.publish('new', 'current');
    await region.publish('removed', 1);
    await region.publish('removed', null);
    const h2 = await region.start('h2', {
      world: new Map<string, unknown>([
        ['removed', 1],
        ['new', 'old'],
      ]),
    });
    await h2.agent.converged;
    expect(h2.world).toEqual(new Map([['new', 'current']]));
    expect(h2.calls.slice(0, 2)).toEqual(['start', 'converge']);
    await eventually(() => expect(h2.calls).toContain('serve'));
  });

  it('serves although a state cannot be applied, and retries it', async (t) => {
    const region = await openRegion(t);
    await region.startAll('h1');
    await region.publish('a', 1);
    const h2 = await region.start('h2', { failures: new Map([['a', retryable('busy')]]) });
    await h2.agent.converged;
    expect(h2.world.has('a')).toBe(false);
    h2.failures.clear();
    await eventually(() => expect(h2.world.get('a')).toBe(1));
  });

  it('with another key file does not converge, and one that cannot decrypt a single state does', async (t) => {
    const region = await openRegion(t);
    await region.startAll('h1');
    await Promise.all(['a', 'b'].map((id) => region.publish(id, id)));
    const other = createKeyring([{ id: 'test', key: randomBytes(32) }]);
    const h2 = await region.start('h2', { keys: other });
    await h2.agent.started;
    await sleep(1000);
    expect(h2.calls).not.toContain('converge');
    expect((await region.hosts())[1]).toMatchObject({ name: 'h2', leaseValid: true, converged: false });
    await region.db.$client.query(`update published_states set state = '\\x00' where id = 'a'`);
    const h3 = await region.start('h3');
    await h3.agent.converged;
    expect(h3.world).toEqual(new Map([['b', 'b']]));
  });

  it('that does not renew its lease stops serving by itself, and changes wait until then', async (t) => {
    const region = await openRegion(t);
    const [h1] = await region.startAll('h1');
    const clock = movableClock();
    const h2 = await region.start('h2', { now: clock.now });
    await h2.agent.converged;
    await region.publish('a', 1);
    await eventually(() => expect(existsSync(leaseFileOf(h2.dataDir))).toBe(true));
    // As if the process had been stopped for an hour.
    clock.offset = 3600;
    await eventually(() => expect(h2.calls).toContain('stopServing'));
    expect(existsSync(leaseFileOf(h2.dataDir))).toBe(false);
    await region.publish('a', 2);
    expect(h1!.world.get('a')).toBe(2);
    // It takes a new lease and converges.
    await eventually(() => expect(h2.world.get('a')).toBe(2));
  });

  it('without a lease delays a change and does not block it', async (t) => {
    const region = await openRegion(t);
    const [h1, h2] = await region.startAll('h1', 'h2');
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    h2!.gate = gate;
    const published = region.publish('a', 1);
    await eventually(() => expect(h1!.world.get('a')).toBe(1));
    await region.db.$client.query(
      `update hosts set incarnation = gen_random_uuid(), lease_until = now() - interval '1 second' where name = 'h2'`,
    );
    await published;
    await eventually(() => expect(h2!.calls).toContain('stopServing'));
    open();
    await eventually(() => expect(h2!.world.get('a')).toBe(1));
  });

  it('refuses a second agent of its name', async (t) => {
    const region = await openRegion(t);
    await region.startAll('h1');
    await expect(region.start('h1')).rejects.toThrow('another agent is the host h1 of region 1');
    expect((await region.hosts()).map(({ leaseValid, converged }) => ({ leaseValid, converged }))).toEqual([
      { leaseValid: true, converged: true },
    ]);
  });

  it('refuses the address of another host, also of one that is away', async (t) => {
    const region = await openRegion(t);
    const [h1] = await region.startAll('h1');
    const { address } = (await region.hosts())[0]!;
    const refusal = `host h1 of region 1 has the address ${address}; set CLOUDYARD_HOST_ADDRESS to the address of this host`;
    await expect(region.start('h2', { address })).rejects.toThrow(refusal);
    await h1!.stop('stop');
    await expect(region.start('h2', { address })).rejects.toThrow('cloudyard host forget 1 h1');
    expect((await region.hosts()).map(({ name }) => name)).toEqual(['h1']);
  });

  it('refuses one of two agents that start together with one address', async (t) => {
    const region = await openRegion(t);
    const address = '127.0.0.1';
    const started = await Promise.allSettled(['h1', 'h2'].map((name) => region.start(name, { address })));
    expect(started.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await region.hosts()).toHaveLength(1);
  });

  it('keeps serving while its agent is replaced, and a change meanwhile waits for the next agent', async (t) => {
    const region = await openRegion(t);
    const [h1] = await region.startAll('h1');
    await region.publish('a', 1);
    await eventually(() => expect(h1!.calls).toContain('serve'));
    await h1!.stop('keepDataPlanes');
    expect(h1!.calls).toContain('release');
    expect(h1!.calls).not.toContain('stopServing');
    expect(existsSync(leaseFileOf(h1!.dataDir))).toBe(true);
    let isDone = false;
    const published = region.publish('a', 2).then(() => (isDone = true));
    expect((await region.hosts())[0]).toMatchObject({ leaseValid: true, converged: true });
    expect(isDone).toBe(false);
    const successor = await region.start('h1', { world: h1!.world });
    await published;
    expect(successor.world.get('a')).toBe(2);
  });

  it.for(['keepDataPlanes', 'stop'] as const)(
    'that drains serves until another one can, also if its agent is replaced (%s)',
    async (mode, t) => {
      const region = await openRegion(t);
      const [h1] = await region.startAll('h1');
      await region.setState('h1', 'draining');
      await h1!.stop(mode);
      const successor = await region.start('h1', { world: h1!.world });
      const leaseFile = leaseFileOf(successor.dataDir);
      if (mode === 'keepDataPlanes') expect(existsSync(leaseFile)).toBe(true);
      await eventually(() => expect(successor.calls).toContain('serve'));
      expect(existsSync(leaseFile)).toBe(true);
      expect(successor.calls).not.toContain('drain');
      await region.startAll('h2');
      await eventually(async () => expect((await region.hosts())[0]!.state).toBe('drained'));
      expect(successor.calls).toContain('drain');
      expect(existsSync(leaseFile)).toBe(false);
    },
  );

  it('that cannot continue what its predecessor served stops serving, and blocks no change', async (t) => {
    const region = await openRegion(t);
    const [h1, h2] = await region.startAll('h1', 'h2');
    await region.publish('a', 1);
    await h1!.stop('keepDataPlanes');
    const failures = new Map([['start', new Error('a port is in use')]]);
    const successor = await region.start('h1', { world: h1!.world, failures });
    await region.publish('a', 2);
    expect(h2!.world.get('a')).toBe(2);
    expect(successor.world.size).toBe(0);
    expect((await region.hosts())[0]).toMatchObject({ leaseValid: true, converged: false });
    failures.clear();
    await eventually(() => expect(successor.world.get('a')).toBe(2));
    await eventually(async () => expect((await region.hosts())[0]).toMatchObject({ converged: true }));
  });

  it('that cannot serve counts as not converged, so that no host hands over to it', async (t) => {
    const region = await openRegion(t);
    const failures = new Map([['serve', new Error('keepalived does not start')]]);
    const host = await region.start('h1', { failures });
    await host.agent.converged;
    await eventually(async () =>
      expect((await region.hosts())[0]).toMatchObject({ leaseValid: true, converged: false }),
    );
    expect(host.calls).toContain('stopServing');
    expect(existsSync(leaseFileOf(host.dataDir))).toBe(false);
    failures.clear();
    await eventually(() => expect(host.calls).toContain('serve'));
    expect((await region.hosts())[0]).toMatchObject({ converged: true });
  });

  it('that stops while it takes the lease again does not keep it', async (t) => {
    const region = await openRegion(t);
    const [h1] = await region.startAll('h1');
    const stopped = Promise.withResolvers<void>();
    // The lease is lost by then, and the statement that takes it again follows.
    h1!.onStatus = () => h1!.calls.includes('stopServing') && void h1!.stop('stop').then(stopped.resolve);
    await region.db.$client.query(
      `update hosts set incarnation = null, lease_until = now() - interval '1 hour' where name = 'h1'`,
    );
    await stopped.promise;
    const { rows } = await region.db.$client.query(
      'select incarnation, converged, lease_until > now() as "leaseValid" from hosts',
    );
    expect(rows).toEqual([{ incarnation: null, converged: false, leaseValid: false }]);
  });

  it('that ends in order delays no change', async (t) => {
    const region = await openRegion(t);
    const [h1, h2] = await region.startAll('h1', 'h2');
    await h2!.stop('stop');
    expect(await region.hosts()).toMatchObject([{ leaseValid: true }, { leaseValid: false, converged: false }]);
    expect(existsSync(leaseFileOf(h2!.dataDir))).toBe(false);
    await region.publish('a', 1);
    expect(h1!.world.get('a')).toBe(1);
  });

  it('drains and serves again as the operator requests, and others see it', async (t) => {
    const region = await openRegion(t);
    const [h1, h2] = await region.startAll('h1', 'h2');
    await eventually(() => expect(h2!.calls).toContain('serve'));
    await region.setState('h2', 'draining');
    await eventually(async () => expect((await region.hosts())[1]!.state).toBe('drained'));
    expect(h2!.calls).toContain('drain');
    await eventually(() => expect(existsSync(leaseFileOf(h2!.dataDir))).toBe(false));
    await eventually(() => expect(h1!.views.at(-1)!.hosts[1]!.state).toBe('drained'));
    // A drained host follows changes, so that it can serve at once.
    await region.publish('a', 1);
    expect(h2!.world.get('a')).toBe(1);
    h2!.calls.length = 0;
    await region.setState('h2', 'active');
    await eventually(() => expect(h2!.calls).toContain('serve'));
    expect(existsSync(leaseFileOf(h2!.dataDir))).toBe(true);
  });

  it('retries a change of the hosts that a part did not follow', async (t) => {
    const region = await openRegion(t);
    const [h1] = await region.startAll('h1');
    h1!.failures.set('hosts', new Error('busy'));
    await region.startAll('h2');
    await eventually(() => expect(h1!.calls).toContain('missed 2 converged'));
    h1!.failures.clear();
    await eventually(() => expect(h1!.views.at(-1)?.hosts[1]?.converged).toBe(true));
  });
});
