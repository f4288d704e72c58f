/** What the soak measures: memory and descriptors of the processes, sizes in the database and on disk, and latency. */
import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { readOrEmpty } from '../../src/platform/read-or-empty.ts';
import { descriptorsOf } from '../../src/platform/running-processes.ts';
import { quantile } from '../kills/figures.ts';
import { processesOf, type Yard } from '../processes.ts';
import type { Point } from './trend.ts';

/** What counts as noise: a share of the level, and at least `floor`, in the unit. */
export interface Series {
  title: string;
  unit: 'MiB' | 'ms' | '';
  share: number;
  floor: number;
  points: Point[];
}

export type Measurements = Record<string, Series>;

/**
 * Tables that keep a history for as long as the operator says, or deleted API keys for a day: they grow with every operation, and a
 * soak is shorter than what they keep.
 */
const historyTables = [
  'api_keys',
  'audit_entries',
  'idempotency_keys',
  'lifecycle_policy_run_volumes',
  'lifecycle_policy_runs',
  'notifications',
  'notification_deliveries',
  'tasks',
];

const mib = 1024 * 1024;
const series = (title: string, unit: Series['unit'], share: number, floor: number): Series => ({
  title,
  unit,
  share,
  floor,
  points: [],
});

export function newMeasurements(): Measurements {
  return {
    serverMemory: series('memory of the server', 'MiB', 0.15, 25),
    workerMemory: series('memory of the worker', 'MiB', 0.15, 25),
    daemonMemory: series('memory of all other processes (private)', 'MiB', 0.15, 40),
    serverDescriptors: series('descriptors of the server', '', 0.1, 10),
    workerDescriptors: series('descriptors of the worker', '', 0.1, 20),
    tables: series('tables without history', 'MiB', 0.2, 3),
    indexes: series('indexes without history', 'MiB', 0.2, 3),
    // An image has 65 MB, and the number of shares varies.
    disk: series('data directory without PostgreSQL and images of file shares', 'MiB', 0.2, 60),
    images: series('images of file shares that do not exist', '', 0, 3),
    read: series('latency of a read, median', 'ms', 0.3, 3),
    create: series('latency of a create, median', 'ms', 0.3, 8),
  };
}

/** Times of requests since the last measurement. */
export interface Latencies {
  read: number[];
  create: number[];
}

export async function measure(
  yard: Yard,
  own: { server: number; worker: number },
  latencies: Latencies,
  into: Measurements,
  seconds: number,
): Promise<void> {
  const add = (name: string, value: number) => into[name]!.points.push({ seconds, value });
  const others = processesOf(yard.folder).filter((pid) => pid !== own.server && pid !== own.worker);
  add('serverMemory', memoryOf(own.server));
  add('workerMemory', memoryOf(own.worker));
  add(
    'daemonMemory',
    others.reduce((sum, pid) => sum + memoryOf(pid), 0),
  );
  add('serverDescriptors', descriptorsOf(own.server).length);
  add('workerDescriptors', descriptorsOf(own.worker).length);
  const { tables, indexes } = await databaseSizes(yard);
  add('tables', tables);
  add('indexes', indexes);
  add('disk', diskOf(yard.dataDir));
  add('images', await imagesWithoutShare(yard));
  for (const name of ['read', 'create'] as const) {
    if (latencies[name].length > 0) add(name, quantile(latencies[name].splice(0), 0.5));
  }
}

/** Without pages that are shared with other processes, MiB. */
function memoryOf(pid: number): number {
  const status = readOrEmpty(`/proc/${pid}/status`);
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
}

async function databaseSizes(yard: Yard): Promise<{ tables: number; indexes: number }> {
  const [sizes] = await yard.sql<{ tables: string; indexes: string }>(
    `select sum(pg_table_size(oid)) as tables, sum(pg_indexes_size(oid)) as indexes
     from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and relname <> all ($1)`,
    [historyTables],
  );
  return { tables: Number(sizes!.tables) / mib, indexes: Number(sizes!.indexes) / mib };
}

/** Bytes of each table with its indexes; `history`: of those that keep a history. */
export async function tableSizes(yard: Yard, { history }: { history: boolean }): Promise<Record<string, number>> {
  const rows = await yard.sql<{ name: string; bytes: string }>(
    `select relname as name, pg_total_relation_size(oid) as bytes
     from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace and (relname = any ($1)) = $2`,
    [historyTables, history],
  );
  return Object.fromEntries(rows.map(({ name, bytes }) => [name, Number(bytes)]));
}

const imageSuffix = '.xfs';

async function imagesWithoutShare(yard: Yard): Promise<number> {
  const images = globSync(`**/*${imageSuffix}`, { cwd: yard.dataDir });
  const rows = await yard.sql<{ id: string }>('select id from file_shares', []);
  const shares = new Set(rows.map(({ id }) => id));
  return images.filter((image) => !shares.has(basename(image, imageSuffix))).length;
}

function diskOf(dataDir: string): number {
  try {
    const text = execFileSync(
      'du',
      ['-sxk', '--exclude=postgres', '--exclude=mounts', `--exclude=*${imageSuffix}`, dataDir],
      {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    return Number.parseInt(text, 10) / 1024;
  } catch (error) {
    // Files that disappear meanwhile make `du` fail, after it has printed the sum.
    return Number.parseInt((error as { stdout: string }).stdout, 10) / 1024;
  }
}
