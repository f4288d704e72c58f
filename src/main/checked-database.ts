/** Runs the checks of `doctor` on the database within limits of time, and explains why they did not end. */
import type pg from 'pg';
import { postgresCode, shortageOf } from '../platform/db-errors.ts';
import { connectionProblem, queryTimeoutMs, sharedSessions, sharesSessions } from '../platform/pooler.ts';
import { withClient } from '../platform/with-client.ts';
import type { Finding } from './finding.ts';
import { program } from './program.ts';

/** Shorter than the limit of the client, so that PostgreSQL names the reason. */
const lockTimeoutMs = 3000;
const statementTimeoutMs = 4000;
const lockNotAvailable = '55P03';
const queryCanceled = '57014';

/** The role of Cloudyard may not change settings of the server. */
export const asSuperuser = (statement: string, then = '') =>
  `runuser -u postgres -- psql -c '${statement}'    # as root, on the host of PostgreSQL${then}`;

/** The findings of `checks`, or one that names the reason if they do not end. */
export async function withCheckedDatabase(
  connection: pg.ClientConfig,
  checks: (client: pg.Client) => Promise<Finding[]>,
): Promise<Finding[]> {
  const limits = { connectionTimeoutMillis: 5000, query_timeout: queryTimeoutMs };
  const config = { ...connection, ...limits, application_name: 'cloudyard doctor' };
  const run = async (client: pg.Client): Promise<Finding[]> => {
    if (await sharesSessions(client, config))
      return [failure(sharedSessions, `${program} doctor    # when you have set it`)];
    await client.query(`set lock_timeout = ${lockTimeoutMs}; set statement_timeout = ${statementTimeoutMs}`);
    return checks(client).catch(async (error: Error) => [await explain(client, error)]);
  };
  return withClient(config, run).catch((error: Error) => [unreachable(error)]);
}

const failure = (detail: string, remedy: string): Finding => ({ name: 'database', ok: false, detail, remedy });
const repeat = `${program} doctor    # when PostgreSQL answers`;

function unreachable(error: Error): Finding {
  const remedy =
    shortageOf(error) === 'has too many connections'
      ? asSuperuser('show max_connections', '; raise it with alter system, then restart PostgreSQL')
      : repeat;
  return failure(`cannot be checked: ${connectionProblem(error)}`, remedy);
}

/** The reason of an error after PostgreSQL has answered queries. @throws `error` if the connection has ended */
async function explain(client: pg.Client, error: Error): Promise<Finding> {
  if (error.message === 'Query read timeout') return failure('cannot be checked: it stopped answering queries', repeat);
  const code = postgresCode(error);
  if (code === queryCanceled) {
    const detail = `cannot be checked: a query took more than ${statementTimeoutMs / 1000} s`;
    return failure(detail, `${program} doctor    # when PostgreSQL is less busy`);
  }
  if (code !== lockNotAvailable) throw error;
  // Reads wait for exclusive locks only. The query that waited has ended, so its blocker is unknown.
  const { rows } = await client.query<{ pid: number; application: string | null }>(
    `select pid, application_name as application from pg_locks l join pg_stat_activity a using (pid)
     where l.mode = 'AccessExclusiveLock' and l.granted and l.relation is not null and l.database = a.datid
       and a.datname = current_database() and pid <> pg_backend_pid() order by a.xact_start nulls last, pid limit 1`,
  );
  const waited = `cannot be checked: a query waited ${lockTimeoutMs / 1000} s for a lock`;
  const holder = rows[0];
  if (!holder) return failure(waited, repeat);
  const query = `select usename, state, xact_start, query from pg_stat_activity where pid = ${holder.pid}`;
  return failure(`${waited} of process ${holder.pid} (${holder.application || 'unnamed'})`, asSuperuser(query));
}
