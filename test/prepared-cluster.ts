/**
 * A PostgreSQL cluster with a migrated database, created once in a test run and copied for each yard: initdb and migrations
 * take about 1 s of CPU time.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { createAtomically } from '../src/platform/embedded-postgres-places.ts';

/** Makes the cluster of a data directory, which is empty. A server that starts there migrates it again, without changes. */
export async function copyPreparedCluster(dataDir: string): Promise<void> {
  const prepared = join(inject('preparedClusters'), 'migrated');
  if (!existsSync(prepared)) await createAtomically(prepared, prepare);
  const cluster = join(prepared, 'postgres');
  // A link would lead to a cluster that all yards share. PostgreSQL cannot enter the directory; servers initialize their own.
  if (lstatSync(cluster).isDirectory()) execFileSync('cp', ['-a', '--reflink=auto', cluster, dataDir]);
}

async function prepare(dataDir: string): Promise<void> {
  mkdirSync(dataDir);
  chmodSync(dataDir, 0o755);
  const { startEmbeddedPostgres } = await import('../src/platform/embedded-postgres.ts');
  const { silentLogger } = await import('../src/platform/log.ts');
  const { migrate } = await import('../src/main/migrate.ts');
  const postgres = await startEmbeddedPostgres({ dataDir, log: silentLogger });
  await migrate(postgres.connection).finally(() => postgres.stop());
}
