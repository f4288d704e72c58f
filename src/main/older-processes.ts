/**
 * Servers, workers, agents and commands of an older version that use the database when this version migrates it.
 *
 * Invariant: a process opens these pools only after it has migrated the database. While migrations are pending, their
 * connections therefore belong to older versions, and not to processes of this version that start at the same time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { ConnectionOptions } from '../platform/db.ts';
import { withUnlimitedClient } from '../platform/with-client.ts';
import { program } from './program.ts';

/** Migrations after which processes of the version before them fail. The others only add (test/migration-lint.ts). */
export const breakingMigrations: readonly string[] = [
  // Drops the queue of 0.2.0.
  '0001_jobs',
];

const pools = ['api', 'worker', 'notifier', 'publisher', 'agent', 'command'].map((part) => `cloudyard ${part}`);
/** PostgreSQL ends the sessions of a process that has just ended within this time. */
const settleMs = 3000;

export interface OlderProcessesOptions {
  /** Names of the migrations to run. */
  pending: readonly string[];
  /** Migrates also if older processes fail afterwards. */
  force: boolean;
  report: (text: string) => void;
}

/**
 * Reports processes of an older version that keep running after the migration.
 * @throws Error if they would fail after it, unless `force` is set
 */
export async function checkOlderProcesses(
  connection: ConnectionOptions,
  { pending, force, report }: OlderProcessesOptions,
): Promise<void> {
  const isBreaking = pending.some((name) => breakingMigrations.includes(name));
  const found = await withUnlimitedClient({ ...connection, application_name: 'cloudyard migrate' }, async (client) => {
    const deadline = performance.now() + settleMs;
    for (;;) {
      const sessions = await olderSessions(client);
      if (sessions.length === 0 || !isBreaking || force || performance.now() > deadline) return sessions;
      await sleep(100);
    }
  });
  if (found.length === 0) return;
  const list = found.join('; ');
  if (!isBreaking) {
    report(`processes of an older version use the database and cannot start again; replace them soon: ${list}`);
  } else if (force) {
    report(`processes of an older version use the database and fail after the migration; stop them: ${list}`);
  } else {
    throw new Error(
      'the database was not migrated, because servers, workers or commands of an older version use it and would fail: ' +
        `${list}; stop them first; if only connections of ended processes remain, run: ${program} migrate --force`,
    );
  }
}

interface Session {
  name: string;
  /** Null for a local socket, or for a role that may not see it. */
  address: string | null;
  since: Date | null;
}

/** For example `cloudyard api at 10.0.0.11, connected since 2026-11-27T10:00:00.000Z`. */
async function olderSessions(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<Session>(
    `select application_name as name, host(client_addr) as address, min(backend_start) as since from pg_stat_activity
     where datname = current_database() and application_name = any($1) group by 1, 2 order by 1, 2`,
    [pools],
  );
  return rows.map(
    ({ name, address, since }) =>
      name +
      (address === null ? '' : ` at ${address}`) +
      (since === null ? '' : `, connected since ${since.toISOString()}`),
  );
}
