/**
 * Counts the active tasks of each client, for the limit of tasks and for the priorities of jobs.
 *
 * The count is approximate: what the database said within the last seconds, plus what this process has enqueued since. So
 * a create does not count rows, and several servers together may exceed a limit by what they accept within a second.
 */
import { ClientError } from '../errors/catalogue.ts';
import type { Db } from '../platform/db.ts';

const refreshMs = 1000;
/** At the limit, where a client waits for its tasks to end. */
const refreshAtLimitMs = 100;
/** A refresh may take at most this share of the time, however long the backlog is. */
const refreshLoad = 0.05;
/** Older counts are ignored: nothing was enqueued here meanwhile, and many tasks may have ended. */
const staleMs = 5000;

export interface WeightedClient {
  clientId: number;
  weight?: number;
}

export interface BacklogOptions {
  db: Db;
  /** Active tasks of a client of weight 1. */
  limit: number;
  /** Called for every refusal, for metrics. */
  onRefusal(): void;
}

export interface Backlog {
  /** Adds one task. Returns how many the client had in the region before. */
  add(client: WeightedClient, regionId: number | null): number;
  /** @throws ClientError 429 when the client is at its limit */
  requireRoom(client: WeightedClient): void;
}

interface Counts {
  total: number;
  byRegion: Map<number | null, number>;
}

export function createBacklog({ db, limit, onRefusal }: BacklogOptions): Backlog {
  let counts = new Map<number, Counts>();
  /** What was added since the current refresh began: its result may lack them. */
  let added: [clientId: number, regionId: number | null][] | null = null;
  let refreshedAt = -Infinity;
  let tookMs = 0;

  const count = (to: Map<number, Counts>, clientId: number, regionId: number | null, n: number) => {
    let ofClient = to.get(clientId);
    if (!ofClient) to.set(clientId, (ofClient = { total: 0, byRegion: new Map() }));
    ofClient.total += n;
    ofClient.byRegion.set(regionId, (ofClient.byRegion.get(regionId) ?? 0) + n);
  };

  const refresh = async () => {
    const started = performance.now();
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
      // Without the database nothing is enqueued either.
    } finally {
      added = null;
      refreshedAt = performance.now();
      tookMs = refreshedAt - started;
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
        `the client has ${most} tasks that have not ended, its limit; try again when some have ended`,
        { headers: { 'retry-after': '2' } },
      );
    },
  };
}
