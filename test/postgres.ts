/**
 * One PostgreSQL for a test run, with a migrated template database that a test file clones in about 50 ms.
 * TEST_DATABASE_URL selects another server; its user must be able to create databases. TMPDIR selects where all files of the run
 * are; default: in memory.
 */
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { migrate } from '../src/main/migrate.ts';
import type { ConnectionOptions } from '../src/platform/db.ts';
import { startEmbeddedPostgres } from '../src/platform/embedded-postgres.ts';
import { silentLogger } from '../src/platform/log.ts';
import { withClient } from '../src/platform/with-client.ts';

export const templateDatabase = 'cloudyard_test_template';
const sharedMemory = '/dev/shm';

const settings = {
  // Each file of the parallel ones has a server or workers with pools of their own.
  max_connections: '400',
  // No test kills this server, so it need not survive a crash. Crash tests start their own servers.
  fsync: 'off',
  full_page_writes: 'off',
  max_wal_size: '256MB',
};

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: ConnectionOptions;
    /** A directory for prepared-cluster.ts, removed after the run. */
    preparedClusters: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // For all files of the tests and of the programs that they start.
  process.env['TMPDIR'] ||= await fastFolder();
  const dataDir = await mkdtemp(join(tmpdir(), 'cloudyard-test-'));
  // Otherwise root's cluster would be in /var/lib/cloudyard and never be removed.
  await chmod(dataDir, 0o755);
  const given = process.env.TEST_DATABASE_URL;
  const embedded = given ? null : await startEmbeddedPostgres({ dataDir, log: silentLogger, settings });
  const connection: ConnectionOptions = embedded?.connection ?? { connectionString: given! };
  await withClient(connection, async (admin) => {
    await admin.query(`drop database if exists ${templateDatabase}`);
    await admin.query(`create database ${templateDatabase}`);
  });
  await migrate(inDatabase(connection, templateDatabase));
  project.provide('postgres', connection);
  project.provide('preparedClusters', dataDir);
  return async () => {
    await embedded?.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
}

/**
 * In memory, if there is plenty: creating a database there takes a third of the CPU time. Copying the cluster of a server takes
 * 0.06 s in place of 0.6 s of CPU time and several seconds on a busy disk. A run needs less than 2 GiB.
 */
async function fastFolder(): Promise<string> {
  const { bavail, bsize } = await statfs(sharedMemory).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize > 4 * 1024 ** 3 ? sharedMemory : tmpdir();
}

/** A connection to another database of the same server. */
export function inDatabase(connection: ConnectionOptions, database: string): ConnectionOptions {
  if (!connection.connectionString) return { ...connection, database };
  const url = new URL(connection.connectionString);
  url.pathname = `/${database}`;
  return { connectionString: url.href };
}
