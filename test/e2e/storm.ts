/** Concurrent requests for tests that kill processes, and the invariants afterwards. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { HttpAnswer } from '../http-client.ts';
import type { Yard } from '../processes.ts';
import { until } from '../until.ts';

export const shares = '/cloud/v1/file_shares/1/1';

export async function defaultNetwork(yard: Yard): Promise<string> {
  return (await yard.get('/cloud/v1/networks/1/1')).body.results[0].id;
}

export function newShare(name: string, networkId: string, changes: object = {}) {
  const access = [{ ip_address: '127.0.0.1', access_mode: 'rw' }];
  return { name, protocol: 'NFS', size: 1, network: { network_id: networkId }, access, ...changes };
}

export interface Storm {
  /** Resolves when this number of requests is acknowledged. */
  reached(acknowledged: number): Promise<void>;
  /** All responses, in the order of the requests. @throws if one was not acknowledged */
  answers: Promise<HttpAnswer[]>;
}

/** Sends all requests, 16 at a time. */
export function storm(requests: (() => Promise<HttpAnswer>)[]): Storm {
  const answers: HttpAnswer[] = [];
  let [next, acknowledged] = [0, 0];
  const sender = async () => {
    while (next < requests.length) {
      const mine = next++;
      answers[mine] = await requests[mine]!();
      acknowledged += 1;
    }
  };
  const all = Promise.all(Array.from({ length: 16 }, sender)).then(() => answers);
  // The caller that awaits `answers` gets the error.
  all.catch(() => undefined);
  return { reached: (count) => until(() => acknowledged >= count, 120, `${count} acknowledged`), answers: all };
}

export async function createMany(yard: Yard, count: number): Promise<Storm> {
  const networkId = await defaultNetwork(yard);
  return storm(
    Array.from({ length: count }, (_, i) => () => yard.insist('POST', shares, newShare(`share-${i}`, networkId))),
  );
}

/** Waits for the tasks of the responses. Every failed task has an error message. */
export async function allEnded(yard: Yard, storm: Storm): Promise<any[]> {
  const answers = await storm.answers;
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  const tasks = await Promise.all(answers.map((answer) => yard.ended(answer, 90)));
  for (const task of tasks) if (task.state !== 'FINISHED') expect(task.error).toMatch(/\w+ \w+/);
  return tasks;
}

/** Checks the invariants of a system without active tasks. `rows` is the expected number of shares. */
export async function expectConsistent(yard: Yard, rows: number): Promise<void> {
  await until(
    async () => Number((await yard.sql('select count(*) from jobs'))[0]!['count']) === 0,
    30,
    'an empty queue',
  );
  const [figures] = await yard.sql(`select
    (select count(*)::int from file_shares) as rows,
    (select count(distinct name)::int from file_shares) as names,
    (select count(*)::int from file_shares where observed_generation < generation) as pending,
    (select count(*)::int from tasks where state in ('NEW', 'RUNNING')) as active,
    (select coalesce(sum(count), 0)::int from row_counts where resource = 'file_share') as counted,
    (select coalesce(sum(usage), 0)::int from quota_counters where kind = 'sfs_count') as count_quota,
    (select coalesce(sum(usage), 0)::int from quota_counters where kind = 'sfs_size') as size_quota,
    (select coalesce(sum(size), 0)::int from file_shares) as size`);
  expect(figures).toEqual({
    rows,
    names: rows,
    pending: 0,
    active: 0,
    counted: rows,
    count_quota: rows,
    size_quota: figures!['size'],
    size: figures!['size'],
  });
  const listed = await yard.get(`${shares}?limit=1000`);
  expect(listed.body).toMatchObject({ count: rows });
}

/** Expects on the host exactly the available shares: specs, exports, images of their size, mounts, loop devices. */
export async function expectHostEqualsRows(yard: Yard): Promise<void> {
  const found = await yard.sql<{ id: string; size: string }>(
    `select id, size from file_shares where status = 'available' order by id`,
  );
  const ids = found.map(({ id }) => id);
  const folder = (name: string) => join(yard.dataDir, 'file-shares', name);
  const namesIn = (name: string) => readdirSync(folder(name)).sort();
  expect(namesIn('specs')).toEqual(ids.map((id) => `${id}.json`));
  expect(namesIn('images')).toEqual(ids.map((id) => `${id}.xfs`));
  expect(namesIn('mounts')).toEqual(ids);
  expect(namesIn('quarantine')).toEqual([]);
  expect(yard.mounts().sort()).toEqual(ids.map((id) => folder(`mounts/${id}`)));
  expect(yard.loopDevices()).toHaveLength(ids.length);
  expect(exported(yard)).toEqual(ids);
  for (const { id, size } of found) expect(statSync(folder(`images/${id}.xfs`)).size).toBe(Number(size) * 1024 ** 3);
}

function exported(yard: Yard): string[] {
  const folder = join(yard.dataDir, 'file-shares', 'ganesha', 'runtime', 'configuration');
  const configurations = readdirSync(folder).filter((name) => /^ganesha\..*\.conf$/.test(name));
  expect(configurations).toHaveLength(1);
  const text = readFileSync(join(folder, configurations[0]!), 'utf8');
  return [...text.matchAll(/Pseudo = "\/shares\/([^"]*)"/g)].map((match) => match[1]!).sort();
}
