/**
 * Counts the active tasks of each client, for the limit of tasks and for the priorities of jobs, and the jobs in the queue.
 *
 * The counts are approximate: those of the database, some seconds old, plus the tasks that this process has enqueued since.
 * So a create does not count rows, and several servers together may exceed a limit by what they accept within a second.
 */
import { tooManyRequests, unavailable } from '../errors/catalogue.ts';
import { type Db, prepared } from '../platform/db.ts';
import { countAllJobs } from './jobs.ts';

const refreshMs = 1000;
/** At the limit, where a client waits for its tasks to end. */
const refreshAtLimitMs = 100;
/** A refresh may take at most this share of the time, however long the backlog is. */
const refreshLoad = 0.05;
/** Older counts are ignored: nothing was enqueued here meanwhile, and many tasks may have ended. */
const staleMs = 5000;

/** The active tasks of each client in each region; the row without a client counts the jobs of the queue. */
const readCounts = prepared<{ client_id: number | null; region_id: number | null; count: number }>(
  'tasks_backlog',
  `select client_id, region_id, count(*) from tasks where state in ('NEW', 'RUNNING') group by client_id, region_id
   union all ${countAllJobs}`,
);

export interface WeightedClient {
  clientId: number;
  weight?: number;
}

interface BacklogOptions {
  db: Db;
  /** Active tasks of a client of weight 1. */
  limit: number;
  /** Jobs in the queue, above which creates are refused. */
  maxJobs: number;
  /** Called for every refusal, for metrics. */
  onRefusal(limit: 'tasks' | 'backlog'): void;
}

export type Backlog = ReturnType<typeof createBacklog>;

interface Counts {
  total: number;
  byRegion: Map<number | null, number>;
}

export function createBacklog({ db, limit, maxJobs, onRefusal }: BacklogOptions) {
  let counts = new Map<number, Counts>();
  let jobs = 0;
  /** Tasks that were added since the current refresh began: its result may lack them. */
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
      const rows = await readCounts(db);
      const fresh = new Map<number, Counts>();
      for (const row of rows) if (row.client_id !== null) count(fresh, row.client_id, row.region_id, row.count);
      for (const [clientId, regionId] of added) count(fresh, clientId, regionId, 1);
      counts = fresh;
      jobs = rows.find(({ client_id }) => client_id === null)!.count + added.length;
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
    if (age > staleMs) {
      counts = new Map();
      jobs = 0;
    }
    void refresh();
  };

  return {
    /** Adds one task. Returns how many the client had in the region before. */
    add({ clientId }: WeightedClient, regionId: number | null): number {
      refreshWhenOlder(refreshMs);
      const before = counts.get(clientId)?.byRegion.get(regionId) ?? 0;
      count(counts, clientId, regionId, 1);
      jobs += 1;
      added?.push([clientId, regionId]);
      return before;
    },

    /** @throws ClientError 429 when the client is at its limit */
    requireRoom({ clientId, weight = 1 }: WeightedClient): void {
      const most = limit * weight;
      if ((counts.get(clientId)?.total ?? 0) < most) return;
      refreshWhenOlder(refreshAtLimitMs);
      onRefusal('tasks');
      const message = `the client has ${most} tasks that have not ended, its limit; try again when some have ended`;
      throw tooManyRequests(message, 2);
    },

    /** Call it for tasks that create something: changes and deletes may shorten the queue. @throws ClientError 503 */
    requireShortQueue(): void {
      if (jobs < maxJobs) return;
      refreshWhenOlder(refreshAtLimitMs);
      onRefusal('backlog');
      const message = `${maxJobs} jobs wait for a worker, the limit; try again in 5 seconds`;
      throw unavailable(message, { retrySeconds: 5 });
    },
  };
}
