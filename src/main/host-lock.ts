/**
 * One process at a time works with a data directory's host state (images, exports, daemons). The lock is an advisory
 * lock in the database, so it ends with the process, however that ends; who holds it is in `application_name`.
 */
import { hostname } from 'node:os';
import { realpathSync } from 'node:fs';
import pg from 'pg';
import type { ConnectionOptions } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';

const hostLocks = 0x636c6f76;

export class DataDirectoryInUse extends Error {}

export interface HostLock {
  release(): Promise<void>;
}

/** @throws DataDirectoryInUse that names the holder */
export async function lockDataDirectory(
  connection: ConnectionOptions,
  dataDir: string,
  log: Logger,
): Promise<HostLock> {
  const name = `${hostname()}:${realpathSync(dataDir)}`;
  let client: pg.Client;
  let released = false;

  const take = async (): Promise<void> => {
    client = new pg.Client({ ...connection, application_name: `cloudyard worker, process ${process.pid}` });
    // What breaks shows as a rejection, or as the end below.
    client.on('error', () => {});
    await client.connect();
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1, hashtext($2)) as taken', [
      hostLocks,
      name,
    ]);
    if (rows[0]!.taken) {
      client.once('end', () => {
        if (!released) void retake();
      });
      return;
    }
    const holder = await holderOf(client, name);
    await client.end();
    throw new DataDirectoryInUse(
      `the data directory ${dataDir} is in use by ${holder}; stop it, or set CLOUDYARD_DATA_DIR`,
    );
  };

  /** After PostgreSQL was restarted. Somebody else may have been quicker: then this process must go. */
  const retake = async (): Promise<void> => {
    while (!released) {
      try {
        return await take();
      } catch (error) {
        if (error instanceof DataDirectoryInUse) {
          log.fatal({ err: error }, 'another process took the data directory');
          process.kill(process.pid, 'SIGTERM');
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, 200).unref());
      }
    }
  };

  await take();
  return {
    async release() {
      released = true;
      await client.end().catch(() => {});
    },
  };
}

async function holderOf(client: pg.Client, name: string): Promise<string> {
  const { rows } = await client.query<{ application_name: string; backend_start: Date }>(
    `select a.application_name, a.backend_start from pg_locks l join pg_stat_activity a on a.pid = l.pid
     where l.locktype = 'advisory' and l.granted and l.objsubid = 2
       and l.classid = $1::int8::oid and l.objid = (hashtext($2)::int8 & 4294967295)::oid`,
    [hostLocks, name],
  );
  const holder = rows[0];
  return holder ? `${holder.application_name} (since ${holder.backend_start.toISOString()})` : 'another process';
}
