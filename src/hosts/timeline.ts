/**
 * Notices that another server became the primary of the database. It may lack the last commits of its predecessor, unless
 * replication is synchronous: published states, observations, and revisions, which are then given to other states.
 */
import type pg from 'pg';
import type { Logger } from '../platform/log.ts';

/** Each promotion begins a timeline of the write-ahead log. A restart of the same server does not. */
const readText = 'select left(pg_walfile_name(pg_current_wal_lsn()), 8) as timeline';

/** A server that does not show its timeline, such as a hosted one, counts as the same one. */
export function createTimeline(log: Logger) {
  let current: string | null = null;
  let changes = 0;
  return {
    /** Call it with each new connection. */
    async read(client: Pick<pg.ClientBase, 'query'>): Promise<void> {
      const { rows } = await client.query<{ timeline: string }>(readText).catch((error: unknown) => {
        log.debug({ err: error }, 'cannot read the timeline of the database');
        return { rows: [] };
      });
      const [found] = rows;
      if (!found || found.timeline === current) return;
      if (current !== null) changes += 1;
      current = found.timeline;
    },
    /** How often the timeline has changed. */
    changes: () => changes,
  };
}

export type Timeline = ReturnType<typeof createTimeline>;
