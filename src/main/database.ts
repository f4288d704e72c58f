/** Opens the external or the embedded database. Few modules, so that the embedded one starts while those of the server load. */
import { connect, type ConnectionOptions, type Db, type PoolOptions } from '../platform/db.ts';
import { joinEmbeddedPostgres, startEmbeddedPostgres } from '../platform/embedded-postgres.ts';
import type { Logger } from '../platform/log.ts';
import { connectionProblem, queryTimeoutMs, sharedSessions, sharesSessions } from '../platform/pooler.ts';
import type { CoreSettings } from '../platform/settings.ts';
import { withClient } from '../platform/with-client.ts';
import type { ShutdownSteps } from './shutdown.ts';

export type Database = Awaited<ReturnType<typeof openDatabase>>;

/**
 * Begins to open the database, and adds the step that closes it. A failure rejects the result, which the caller may await
 * later. Errors in configuration files are found while it opens, so after one the embedded PostgreSQL may have been started.
 */
export function beginDatabase(
  settings: CoreSettings,
  log: Logger,
  closing: ShutdownSteps,
  options?: OpenOptions,
): Promise<Database> {
  const opening = openDatabase(settings, log, options);
  const opened = opening.catch(() => null);
  closing.push(async () => (await opened)?.close());
  return opening;
}

interface OpenOptions {
  /** Whether the process that started this one supervises the embedded PostgreSQL. */
  isSupervised?: boolean;
}

/** @throws when the database cannot be reached */
export async function openDatabase(settings: CoreSettings, log: Logger, { isSupervised = false }: OpenOptions = {}) {
  const open = isSupervised ? joinEmbeddedPostgres : startEmbeddedPostgres;
  const embedded = settings.databaseUrl ? null : await open({ dataDir: settings.dataDir, log });
  if (!embedded) await checkConnection(settings.databaseUrl!);
  const connection: ConnectionOptions = embedded?.connection ?? { connectionString: settings.databaseUrl! };
  const pools: Db[] = [];
  return {
    connection,
    /** For the start table; without the password. */
    description: embedded ? `embedded PostgreSQL in ${settings.dataDir}` : withoutPassword(settings.databaseUrl!),
    connect(name: string, poolSize: number, limits?: Pick<PoolOptions, 'statementTimeout'>): Db {
      const db = connect({ ...connection, ...limits, name, poolSize, log });
      pools.push(db);
      return db;
    },
    /** Closes all pools; stops the embedded server if no other process uses it. */
    async close(): Promise<void> {
      await Promise.all(pools.map((db) => db.$client.end()));
      await embedded?.stop({ onlyIfUnused: true });
    },
  };
}

async function checkConnection(url: string): Promise<void> {
  const config = { connectionString: url, connectionTimeoutMillis: 5000, query_timeout: queryTimeoutMs };
  const isShared = await withClient(config, (client) => sharesSessions(client, config)).catch((cause: Error) => {
    // A host name with two addresses fails with an AggregateError, which has no message.
    const reason = connectionProblem(cause) || (cause as AggregateError).errors?.[0]?.message;
    throw new Error(`the database ${withoutPassword(url)} cannot be reached: ${reason}`, { cause });
  });
  if (isShared) throw new Error(`the database ${withoutPassword(url)} ${sharedSessions}`);
}

/**
 * The password may have unencoded characters, also `@` and `?`, and may be a parameter. A number before a path or a query is a
 * port, and `[` begins an address.
 */
function withoutPassword(url: string): string {
  const secret = /(\/\/[^:/?[]*:)(?:[^?]*|(?!\d*[/?]).*)@/;
  return url.replace(secret, '$1…@').replace(/([?&]password=)[^&]*/g, '$1…');
}
