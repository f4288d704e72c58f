/** A region of several hosts whose database fails over to a standby that has not received the last commits. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, it, type TestContext } from 'vitest';
import { query } from '../../test/processes.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../test/replicated-postgres.ts';
import { requires } from '../../test/requires.ts';
import { until } from '../../test/until.ts';
import { eventually, openRegion } from '../hosts/test-region.ts';
import { migrate } from './migrate.ts';

describe.skipIf(!requires('postgresql'))('a failover that loses commits', () => {
  it('leaves hosts with what is published, and changes are published again', { timeout: 120_000 }, async (t) => {
    const servers = await startReplicatedPostgres();
    t.onTestFinished(servers.remove);
    const { port, failOver } = await startForwarder(t, servers);
    const connection = { host: '127.0.0.1', port, user: 'operator', database: 'cloudyard' };
    await migrate(connection);
    const region = await openRegion(t, { database: { connection, drop: async () => {} }, leaseSeconds: 15 });
    const hosts = await region.startAll('h1', 'h2');
    await Promise.all(['kept', 'changed'].map((id) => region.publish(id, 'first')));

    await detachStandby(servers);
    await region.publish('changed', 'lost');
    await region.publish('created', 'lost');
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    hosts[0]!.gate = gate;
    const waiting = region.publish('waiting', 'lost').catch((error: unknown) => error);
    await eventually(() => expect(hosts[1]!.world.has('waiting')).toBe(true));
    await failOver();
    open();

    expect(await waiting).toMatchObject({ retryable: true, message: expect.stringContaining('in a failover') });
    // It gets the revision of a lost state.
    await region.publish('kept', 'second');
    for (const { world } of hosts) {
      await eventually(() =>
        expect([...world].sort()).toEqual([
          ['changed', 'first'],
          ['kept', 'second'],
        ]),
      );
    }
    for (const { calls } of hosts) expect(calls).not.toContain('stopServing');
  });
});

/** What the standby receives ends here, and commits do not wait for it. */
async function detachStandby({ primary, standby }: ReplicatedPostgres): Promise<void> {
  const [onPrimary, onStandby] = [primary, standby].map(({ url }) => ({ connectionString: url }));
  await query(onPrimary!, `alter system set synchronous_standby_names = ''`);
  await query(onPrimary!, 'select pg_reload_conf()');
  await query(onStandby!, `alter system set primary_conninfo = ''`);
  await query(onStandby!, 'select pg_reload_conf()');
  await until(
    async () => (await query(onPrimary!, 'select from pg_stat_replication')).length === 0,
    30,
    'a standby without its primary',
  );
}

/** Forwards connections to the primary, as HAProxy does. */
async function startForwarder(t: TestContext, { primary, standby }: ReplicatedPostgres) {
  let target = primary.port;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const onward = connect(target, '127.0.0.1');
    for (const [one, other] of [[client, onward] as const, [onward, client] as const]) {
      open.add(one);
      one.on('error', () => {});
      one.on('close', () => (open.delete(one), other.destroy()));
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return {
    port: (server.address() as AddressInfo).port,
    async failOver() {
      await primary.kill();
      await query({ connectionString: standby.url }, 'select pg_promote()');
      target = standby.port;
    },
  };
}
