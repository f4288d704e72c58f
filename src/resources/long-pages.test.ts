/** Lists of rows with many tags are sent in groups: a page can have more than 100 MB (docs/decisions/0024-bounded-request-cost.md). */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { maxTagLength, maxTags } from '../tags/tags.ts';

// The test writes rows directly.
const cloud = useCloudyard({ audit: false });

const tags = Object.fromEntries(Array.from({ length: maxTags }, (_, i) => [`key-${i}`, `${i} ü`.repeat(60)]));
const rows = 40;

async function create(kind: string, body: object): Promise<string> {
  const { body: task } = await cloud.ended(await cloud.post(`/cloud/v1/${kind}/1/1`, { name: 'the first', ...body }));
  return task.created_resources[kind][0];
}

const volumeOf = (more: object = {}) => create('volumes', { source: 'new-volume', size: 1, ...more });

async function shareOf(more: object): Promise<string> {
  const { body } = await cloud.get('/cloud/v1/networks/1/1');
  return create('file_shares', { protocol: 'NFS', size: 1, network: { network_id: body.results[0].id }, ...more });
}

it.each([
  ['volumes', volumeOf],
  ['file_shares', shareOf],
  ['snapshots', async (more: object) => create('snapshots', { volume_id: await volumeOf(), ...more })],
])('a long page of %s is sent in groups, with the same items as short pages', async (kind, createOne) => {
  expect(Object.values(tags).every(({ length }) => length <= maxTagLength)).toBe(true);
  const id = await createOne({ tags });
  await cloud.db.$client.query(
    `insert into ${kind} overriding system value select r.* from ${kind} t, generate_series(2, $2::int) n,
     lateral jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'name', 'copy ' || n,
       'created_at', t.created_at + n * interval '1 s')) r where t.id::text = $1`,
    [id, rows],
  );
  const url = `/cloud/v1/${kind}/1/1`;
  const long = await cloud.get(url);
  expect(long.headers).not.toHaveProperty('content-length');
  expect(long.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(long.body.results.filter((item: { name: string }) => item.name.startsWith('copy '))).toHaveLength(rows - 1);
  const items = [];
  for (let offset = 0; offset < long.body.results.length; offset++) {
    const short = await cloud.get(`${url}?limit=1&offset=${offset}`);
    expect(short.headers).toHaveProperty('content-length');
    items.push(...short.body.results);
  }
  expect(long.body.results).toEqual(items);
});
