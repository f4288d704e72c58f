/** How a standby ends: after a failover that failed, during one, and before one. */
import { randomUUID } from 'node:crypto';
import { describe, expect, inject, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import type { ShutdownSteps } from './shutdown.ts';
import { startStandby } from './standby.ts';
import { takeLocks } from './work-locks.ts';

/** A standby that opens a driver, and then does what `after` says. `held`: another process has the lock. */
async function openStandby({ after, held = false }: { after: () => Promise<void>; held?: boolean }) {
  const connection = inject('postgres');
  const locks = [{ key: randomUUID(), what: 'a region' }];
  const holder = held ? await takeLocks(connection, locks, silentLogger) : null;
  const endings: string[] = [];
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const work = async (opened: ShutdownSteps) => {
    opened.push(async (ending) => endings.push(`driver: ${ending}`));
    begun.resolve();
    await after();
    opened.push(async (ending) => endings.push(`worker: ${ending}`));
  };
  const end = () => {
    endings.push('process');
    ended.resolve();
  };
  const close = startStandby({ connection, locks, log: silentLogger, work, end });
  const isFree = async () => {
    const own = await takeLocks(connection, locks, silentLogger).catch(() => null);
    await own?.release();
    return own !== null;
  };
  return { endings, begun: begun.promise, ended: ended.promise, close, isFree, holder };
}

describe('a failover that fails', () => {
  it('hands over the data planes that it has adopted, and ends the process', async () => {
    const standby = await openStandby({ after: () => Promise.reject(new Error('the worker does not start')) });
    await standby.ended;
    expect(standby.endings).toEqual(['driver: handOver', 'process']);
    // SIGTERM to `start`: everything else stops, and the data planes stay handed over.
    await standby.close('stop');
    expect(standby.endings).toEqual(['driver: handOver', 'process']);
    expect(await standby.isFree()).toBe(true);
  });
});

describe('a standby that is stopped', () => {
  it('during its failover ends everything that the failover opens', async () => {
    const { promise: continued, resolve: continues } = Promise.withResolvers<void>();
    const standby = await openStandby({ after: () => continued });
    await standby.begun;
    const closed = standby.close('stop');
    continues();
    await closed;
    expect(standby.endings).toEqual(['worker: stop', 'driver: stop']);
    expect(await standby.isFree()).toBe(true);
  });

  it('before its failover opens nothing', async () => {
    const standby = await openStandby({ after: async () => {}, held: true });
    await standby.close('stop');
    await standby.holder?.release();
    expect(standby.endings).toEqual([]);
    expect(await standby.isFree()).toBe(true);
  });
});
