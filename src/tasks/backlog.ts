/**
 * The active tasks of each client, for two limits: how many a client may have, and in which order jobs run.
 *
 * A count of this process: what the database said within the last seconds, and what was enqueued here since then. So a create
 * costs no count, and a limit may be passed by what several servers accept within a second.
 */
import { ClientError } from '../errors/catalogue.ts';
import type { Db } from '../platform/db.ts';

const refreshMs = 1000;
/** At the limit: tasks end, and their client should not have to wait for a second. */
const refreshAtLimitMs = 100;
/** A refresh may take this share of the time, however long the backlog. */
const refreshLoad = 0.05;
/** Older counts are ignored: nobody enqueued here, and much may have ended. */
const staleMs = 5000;

export interface Share {
  clientId: number;
  weight?: number;
}

export interface BacklogOptions {
  db: Db;
  /** Active tasks of a client of weight 1. */
  limit: number;
  /** Hears of every refusal, for metrics. */
  onRefusal(): void;
}

export interface Backlog {
  /** Counts one more. Returns how many the client has in the region before it. */
  add(share: Share, regionId: number | null): number;
  /** @throws ClientError 429 when the client has as many tasks as it may */
  requireRoom(share: Share): void;
}

interface Counts {
  total: number;
  byRegion: Map<number | null, number>;
}

export function createBacklog({ db, limit, onRefusal }: BacklogOptions): Backlog {
  let counts = new Map<number, Counts>();
  /** What was added since the running refresh began: its result may lack them. */
  let added: [clientId: number, regionId: number | null][] | null = null;
  let refreshedAt = -Infinity;
  let tookMs = 0;

  const count = (to: Map<number, Counts>, clientId: number, regionId: number | null, n: number) => {
    let mine = to.get(clientId);
    if (!mine) to.set(clientId, (mine = { total: 0, byRegion: new Map() }));
    mine.total += n;
    mine.byRegion.set(regionId, (mine.byRegion.get(regionId) ?? 0) + n);
  };

  const refresh = async () => {
    const began = performance.now();
    added = [];
    try {
      const { rows } = await db.$client.query<{ client_id: number; region_id: number | null; count: number }>({
        name: 'tasks_backlog',
        text: `select client_id, region_id, count(*) from tasks where state in ('NEW', 'RUNNING') group by client_id, region_id`,
      });
      const fresh = new Map<number, Counts>();
      for (const row of rows) count(fresh, row.client_id, row.region_id, row.count);
      for (const [clientId, regionId] of added) count(fresh, clientId, regionId, 1);
      counts = fresh;
    } catch {
      // The database is away, and so nothing is enqueued.
    } finally {
      added = null;
      refreshedAt = performance.now();
      tookMs = refreshedAt - began;
    }
  };

  const refreshWhenOlder = (ms: number) => {
    const age = performance.now() - refreshedAt;
    if (added || age < Math.max(ms, tookMs / refreshLoad)) return;
    if (age > staleMs) counts = new Map();
    void refresh();
  };

  return {
    add({ clientId }, regionId) {
      refreshWhenOlder(refreshMs);
      const before = counts.get(clientId)?.byRegion.get(regionId) ?? 0;
      count(counts, clientId, regionId, 1);
      added?.push([clientId, regionId]);
      return before;
    },

    requireRoom({ clientId, weight = 1 }) {
      const most = limit * weight;
      if ((counts.get(clientId)?.total ?? 0) < most) return;
      refreshWhenOlder(refreshAtLimitMs);
      onRefusal();
      throw new ClientError(
        'TooManyRequests',
        `the client has ${most} tasks that have not ended, its limit; try again when some have`,
        { headers: { 'retry-after': '2' } },
      );
    },
  };
}
