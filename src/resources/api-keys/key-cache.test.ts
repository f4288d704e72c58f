/** The key cache of a server follows the database, also after lost connections and notifications. */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { sha256 } from '../../platform/crypto.ts';
import { connect } from '../../platform/db.ts';
import { createListener, type Listener } from '../../platform/listener.ts';
import { silentLogger } from '../../platform/log.ts';
import { useCloudyard } from '../../../test/harness.ts';
import { until } from '../../../test/until.ts';
import { createKeyCache, type KeyCache } from './key-cache.ts';
import type { CachedRow } from './store.ts';

const cloud = useCloudyard({ driver: null });
const container = { name: 'web', namespace: 'default' };
const containers = [container];

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const stop of stops.splice(0).reverse()) await stop();
});

interface OtherCache extends KeyCache {
  /** How many reads of the version have begun. */
  reads(): number;
}

/** The cache of another server, which receives changes through the database only. */
async function anotherCache(): Promise<OtherCache> {
  const db = connect({ ...cloud.connection, poolSize: 2, name: 'another cache', log: silentLogger });
  let count = 0;
  const listener = watchReads(createListener({ db, log: silentLogger }), () => (count += 1));
  const cache = createKeyCache({ clock: cloud.clock, listener });
  await cache.start();
  stops.push(() => db.$client.end(), cache.stop);
  return { ...cache, reads: () => count };
}

/** Calls `onRead` before the cache reads the version of the keys. */
function watchReads({ follow }: Listener, onRead: () => void): Listener {
  const watched = (client: pg.ClientBase): pg.ClientBase => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    const watch = (...args: unknown[]) => {
      if ((args[0] as { name?: string }).name === 'api_key_current') onRead();
      return query(...args);
    };
    return Object.assign(Object.create(client) as pg.ClientBase, { query: watch });
  };
  return {
    follow: (channel, follower) =>
      follow(channel, {
        onNotification: follower.onNotification,
        onConnected: (client, lost) => follower.onConnected(watched(client), lost),
      }),
  };
}

async function createKey() {
  const { projectId, token } = await cloud.newClient();
  const keys = `/cloud/v1/caas/keys/${projectId}/1`;
  const name = `key-${randomUUID().slice(0, 8)}`;
  const { secret } = (await cloud.post(keys, { name, containers }, { token })).body as { secret: string };
  const update = (changes: object) => cloud.patch(`${keys}/${name}`, changes, { token });
  return { secret, name, update, remove: () => cloud.delete(`${keys}/${name}`, { token }) };
}

/** Call after a change: the next read of the version must bring it. */
async function expectWithNextRead(cache: OtherCache, secret: string, refusal: string | null): Promise<void> {
  const before = cache.reads();
  const begunWhenStale: number[] = [];
  const poll = () => {
    const found = cache.refusal(secret, container);
    if (found !== refusal) begunWhenStale.push(cache.reads() - before);
    return found;
  };
  await expect.poll(poll, { interval: 5 }).toBe(refusal);
  // A second read begins when the rows of the first are in the cache.
  expect(Math.max(0, ...begunWhenStale)).toBeLessThanOrEqual(1);
}

describe('another server', () => {
  it('loads existing keys and applies every change with its next read', async () => {
    const before = await createKey();
    const cache = await anotherCache();
    expect(cache.refusal(before.secret, container)).toBeNull();
    const key = await createKey();
    await expectWithNextRead(cache, key.secret, null);
    await key.update({ is_disabled: true });
    await expectWithNextRead(cache, key.secret, 'disabled_key');
    await key.update({ is_disabled: false, containers: [] });
    await expectWithNextRead(cache, key.secret, 'no_containers');
    await key.remove();
    await expectWithNextRead(cache, key.secret, 'unknown_key');
    expect(cache.refusal(before.secret, container)).toBeNull();
    const { rows } = await cloud.db.$client.query(
      'select count(*)::int as count from api_keys where deleted_at is null',
    );
    await expect.poll(() => cache.state().keys).toBe(rows[0].count);
  });

  it('catches up after a lost connection or a missed notification', async () => {
    const cache = await anotherCache();
    const key = await createKey();
    await expectWithNextRead(cache, key.secret, null);
    for (const isDisabled of [true, false]) {
      await cloud.db.$client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'another cache'`,
      );
      await key.update({ is_disabled: isDisabled });
      await expectWithNextRead(cache, key.secret, isDisabled ? 'disabled_key' : null);
    }
    await cloud.db.$client.query(`
      with next as (update revisions set value = value + 1 where name = 'api_keys' returning value)
      update api_keys set is_disabled = true, version = value from next where name = '${key.name}'`);
    await expectWithNextRead(cache, key.secret, 'disabled_key');
  });

  it('reads the version at every notification, and every 500 ms without one', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const cache = await anotherCache();
    await new Promise(setImmediate);
    const before = cache.reads();
    vi.advanceTimersByTime(499);
    expect(cache.reads() - before).toBe(0);
    vi.advanceTimersByTime(1);
    // Unlike expect.poll, it does not advance the clock of the test.
    await until(() => cache.reads() - before === 1, 30, 'a read after 500 ms');
    await createKey();
    await until(() => cache.reads() - before === 2, 30, 'a read at the notification');
  });

  it('reloads all keys after the database is restored to an earlier state', async () => {
    const cache = await anotherCache();
    const [kept, lost] = [await createKey(), await createKey()];
    await expectWithNextRead(cache, lost.secret, null);
    await cloud.db.$client.query('begin; delete from api_keys where name = $$' + lost.name + '$$; commit');
    expect(cache.refusal(lost.secret, container)).toBeNull();
    await cloud.db.$client.query(
      `update revisions set value = (select max(version) from api_keys) where name = 'api_keys'`,
    );
    await expectWithNextRead(cache, lost.secret, 'unknown_key');
    expect(cache.refusal(kept.secret, container)).toBeNull();
  });

  it('treats every key as known until it has loaded', async () => {
    const key = await createKey();
    const cache = createKeyCache({
      clock: cloud.clock,
      listener: createListener({ db: cloud.db, log: silentLogger }),
    });
    expect(cache.knows(key.secret.split('.')[0]!)).toBe(true);
    expect(cache.isLoaded()).toBe(false);
    const other = await anotherCache();
    expect([other.isLoaded(), other.knows('0123456789abcdef')]).toEqual([true, false]);
  });
});

describe('a late update', () => {
  const row = (changes: Partial<CachedRow>): CachedRow => ({
    projectId: 1,
    regionId: 1,
    containers,
    expire: null,
    isDisabled: false,
    keyId: 'late',
    secretHash: sha256('secret'),
    createdAt: new Date(0),
    deletedAt: null,
    version: 1,
    ...changes,
  });

  it('does not overwrite a newer version', () => {
    const cache = createKeyCache({
      clock: cloud.clock,
      listener: createListener({ db: cloud.db, log: silentLogger }),
    });
    const refusal = () => cache.refusal('late.secret', container);
    cache.apply(row({ version: 1_000_000 }));
    expect(refusal()).toBeNull();
    cache.apply(row({ version: 1_000_002, isDisabled: true }));
    cache.apply(row({ version: 1_000_001 }));
    expect(refusal()).toBe('disabled_key');
    cache.apply(row({ version: 1_000_003, deletedAt: new Date() }));
    cache.apply(row({ version: 1_000_002 }));
    expect(refusal()).toBe('unknown_key');
  });
});

describe('rows of deleted keys', () => {
  it('are removed after a day', async () => {
    const key = await createKey();
    await key.remove();
    const count = async () =>
      (await cloud.db.$client.query('select from api_keys where name = $1', [key.name])).rowCount;
    await cloud.services.apiKeys.removeDeleted();
    expect(await count()).toBe(1);
    cloud.clock.advance(86_400 + 60);
    await cloud.services.apiKeys.removeDeleted();
    cloud.clock.set(null);
    expect(await count()).toBe(0);
  });
});
