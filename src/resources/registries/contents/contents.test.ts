/** Registry events that arrive late, twice, never or malformed, and scans of the storage that reconcile the rows. */
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { transaction } from '../../../platform/db.ts';
import { findRemovals, lockById, setHosts } from '../store.ts';
import * as store from './store.ts';

const cloud = useCloudyard();
const withoutWorker = useCloudyard({ driver: null });
const all = '/cloud/v1/registries/1/1';
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
const manifestType = 'application/vnd.oci.image.manifest.v1+json';
let bearer: string;
let made: { id: number; url: string };
let prefix: string;
let count = 0;

beforeAll(async () => {
  await cloud.services.registries.announce('http://127.0.0.1:1');
  bearer = `Bearer ${(await cloud.services.registries.hosting([1]))!.events.secret}`;
});

const fresh = async () => {
  made = (await cloud.post(all, { name: `events-${(count += 1)}` })).body;
  prefix = made.url.split('/')[1]!;
};
const send = (events: unknown, authorization = bearer) =>
  cloud.app.inject({
    method: 'POST',
    url: '/cloudyard/v1/registry_events',
    headers: { authorization, 'content-type': 'application/vnd.docker.distribution.events.v1+json' },
    payload: JSON.stringify({ events }),
  });
const event = (action: string, target: object, more: object = {}) => ({
  id: randomUUID(),
  timestamp: '2026-11-20T10:00:00.5Z',
  action,
  target: { repository: `${prefix}/team/app`, mediaType: manifestType, size: 10, digest: digest('a'), ...target },
  request: { method: action === 'push' ? 'PUT' : 'GET' },
  ...more,
});
const references = [
  { mediaType: 'application/vnd.oci.image.config.v1+json', digest: digest('c'), size: 100 },
  { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: digest('d'), size: 1000 },
  { mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: digest('d'), size: 1000 },
];
/** Push events of the blobs that a manifest references. */
const blobs = () =>
  [
    { size: 100, digest: digest('c') },
    { size: 1000, digest: digest('d') },
  ].map((each) => event('push', { mediaType: 'application/octet-stream', ...each }));
const bytes = async () => (await storedBytes()).rows[0]!.bytes;
const storedBytes = () =>
  cloud.db.$client.query<{ bytes: number; sum: number }>(
    `select storage_used as bytes, (select coalesce(sum(size), 0)::int8 from registry_blobs where registry_id = id) as sum
     from registries where id = $1`,
    [made.id],
  );
const repositories = async () => (await cloud.get(`${all}/${made.id}/repositories`)).body.results;
const artifacts = async () =>
  (await cloud.get(`${all}/${made.id}/repositories/team%2Fapp/artifacts`)).body.results ?? [];

describe('events', () => {
  it('create repositories, artifacts and tags, and count each blob once', async () => {
    await fresh();
    const pushed = event('push', { tag: 'v1', references });
    for (const each of [...blobs(), ...blobs(), pushed, pushed, event('push', { tag: 'v2', references })]) {
      expect((await send([each])).statusCode).toBe(204);
    }
    expect(await bytes()).toBe(1110);
    expect(await repositories()).toMatchObject([{ name: 'team/app', artifact_count: 1, pull_count: 0 }]);
    expect(await artifacts()).toMatchObject([
      {
        digest: digest('a'),
        size: 1110,
        pushed_at: '2026-11-20T10:00:00Z',
        pulled_at: '0001-01-01T00:00:00Z',
        tags: [{ name: 'v1' }, { name: 'v2' }],
      },
    ]);
    expect((await cloud.get(`${all}/${made.id}`)).body).toMatchObject({ repo_count: 1, storage_used: 1110 });
  });

  it('create lists that are read in pages, with the count of all matches', async () => {
    await fresh();
    for (const [i, letter] of ['a', 'b', 'c'].entries()) {
      const at = { timestamp: `2026-11-20T10:00:0${i}Z` };
      await send([event('push', { digest: digest(letter) }, at)]);
      await send([event('push', { repository: `${prefix}/other-${letter}` }, at)]);
    }
    const page = async (path: string, query: string) => {
      const { body } = await cloud.get(`${all}/${made.id}/repositories${path}?${query}`);
      return [body.count, ...body.results.map((each: Record<string, string>) => each['name'] ?? each['digest'])];
    };
    expect(await page('', 'limit=2')).toEqual([4, 'other-a', 'other-b']);
    expect(await page('', 'limit=2&offset=3')).toEqual([4, 'team/app']);
    expect(await page('', 'offset=4')).toEqual([4]);
    expect(await page('/team%2Fapp/artifacts', 'limit=2')).toEqual([3, digest('c'), digest('b')]);
    expect(await page('/team%2Fapp/artifacts', 'limit=2&offset=2')).toEqual([3, digest('a')]);
    expect(await cloud.get(`${all}/${made.id}/repositories?limit=0&offset=-1`)).toMatchObject({
      status: 400,
      body: { errors: [{ path: 'limit' }, { path: 'offset' }] },
    });
  });

  it('of a push that arrive after a removal of its contents do not restore them', async () => {
    await fresh();
    const at = (secondsAgo: number) => ({ timestamp: new Date(Date.now() - secondsAgo * 1000).toISOString() });
    const late = () => event('push', { tag: 'v1', references }, at(60));
    const path = `${all}/${made.id}/repositories/team%2Fapp`;
    for (const removed of [`${path}/artifacts/${digest('a')}/tags/v1`, `${path}/artifacts/${digest('a')}`, path]) {
      await send([event('push', { tag: 'v1', references }, at(-60))]);
      expect((await cloud.delete(removed)).status).toBe(204);
      await send([late()]);
      expect((await artifacts()).flatMap(({ tags }: any) => tags)).toEqual([]);
    }
    expect(await repositories()).toEqual([]);
    await send([event('push', { tag: 'v1', references }, at(-60))]);
    expect(await artifacts()).toMatchObject([{ tags: [{ name: 'v1' }] }]);
  });

  it('count a pull once, and do not count a HEAD request', async () => {
    await fresh();
    await send([event('push', { tag: 'v1' })]);
    const pulled = event('pull', { tag: 'v1' }, { timestamp: '2026-11-20T11:00:00Z' });
    await send([pulled, event('pull', {}, { request: { method: 'HEAD' } })]);
    await Promise.all([send([pulled]), send([pulled])]);
    await send([event('pull', { mediaType: 'application/octet-stream', digest: digest('d') })]);
    expect(await repositories()).toMatchObject([{ pull_count: 1 }]);
    expect(await artifacts()).toMatchObject([
      { pulled_at: '2026-11-20T11:00:00Z', tags: [{ pulled_at: '2026-11-20T11:00:00Z' }] },
    ]);
  });

  it('give an index the size of its images', async () => {
    await fresh();
    await send([event('push', { references }), event('push', { digest: digest('b'), size: 20, references })]);
    const listed = [
      { digest: digest('a'), size: 10 },
      { digest: digest('b'), size: 20 },
      { digest: digest('e'), size: 5 },
    ];
    const mediaType = 'application/vnd.oci.image.index.v1+json';
    await send([event('push', { mediaType, digest: digest('f'), size: 30, references: listed })]);
    const nested = [{ digest: digest('f'), size: 30 }];
    await send([event('push', { mediaType, digest: digest('9'), size: 40, references: nested })]);
    const sizes = (await artifacts()).map((each: { digest: string; size: number }) => [each.digest, each.size]);
    // As in a scan (collect.test.ts).
    expect(Object.fromEntries(sizes)).toEqual({
      [digest('a')]: 1110,
      [digest('b')]: 1120,
      [digest('f')]: 30 + 1110 + 1120 + 5,
      [digest('9')]: 40 + 30 + 1110 + 1120 + 5,
    });
  });

  it('of layers are not taken for those of manifests in a repository with `manifests` in its name', async () => {
    await fresh();
    const repository = `${prefix}/manifests/app`;
    const layer = { repository, mediaType: 'application/octet-stream', digest: digest('d'), size: 1000 };
    const url = (kind: string, of: string) => `http://127.0.0.1:5000/v2/${repository}/${kind}/${of}`;
    await send([event('push', { ...layer, url: url('blobs', digest('d')) })]);
    expect(await repositories()).toEqual([]);
    await send([event('push', { repository, tag: 'v1', url: url('manifests', digest('a')) })]);
    await send([event('pull', { ...layer, url: url('blobs', digest('d')) })]);
    expect(await repositories()).toMatchObject([{ name: 'manifests/app', artifact_count: 1, pull_count: 0 }]);
    expect(await bytes()).toBe(1010);
  });

  it('move a tag to another artifact and delete an artifact', async () => {
    await fresh();
    await send([event('push', { tag: 'v1' })]);
    await send([event('push', { tag: 'v1', digest: digest('b') }, { timestamp: '2026-11-20T10:00:01Z' })]);
    // An older event that arrives late is ignored.
    await send([event('push', { tag: 'v1' }, { timestamp: '2026-11-20T10:00:00Z' })]);
    expect((await artifacts()).map((each: { digest: string; tags: [] }) => [each.digest, each.tags.length])).toEqual([
      [digest('b'), 1],
      [digest('a'), 0],
    ]);
    await send([event('delete', { mediaType: undefined, digest: digest('b') })]);
    expect((await artifacts()).map((each: { digest: string }) => each.digest)).toEqual([digest('a')]);
  });

  it('count the sizes that the host reports, not those that a manifest claims', async () => {
    await fresh();
    const claims = (size: number) =>
      Array.from({ length: 1100 }, (_, i) => ({ digest: `sha256:${String(i).padStart(64, '0')}`, size }));
    const huge = event('push', { tag: 'huge', references: claims(Number.MAX_SAFE_INTEGER) });
    expect((await send([huge])).statusCode).toBe(204);
    expect(await bytes()).toBe(10);
    const none = event('push', { tag: 'none', digest: digest('b'), references: [{ digest: digest('d'), size: 0 }] });
    expect((await send([none, blobs()[1]])).statusCode).toBe(204);
    expect((await storedBytes()).rows[0]).toEqual({ bytes: 1020, sum: 1020 });
  });

  it('that are malformed or unknown change nothing and are accepted, so that the host does not resend them', async () => {
    await fresh();
    const strange = [
      event('push', { repository: 'nobody-999999/app' }),
      event('push', { repository: `x${prefix}/app` }),
      event('push', { repository: prefix }),
      event('push', { repository: `${prefix}/` }),
      event('push', { digest: 'sha256:x' }),
      event('push', { size: -5, digest: digest('e'), mediaType: 'x' }),
      event('push', {}, { timestamp: 'yesterday' }),
      event('push', { tag: 'a\u0000b', repository: 'a\u0000b/c' }),
      event('dance', {}),
      null,
      5,
      {},
    ];
    for (const each of strange) expect((await send([each])).statusCode).toBe(204);
    for (const none of ['{', '[]', 'null', '{"events": 5}']) {
      const headers = { authorization: bearer, 'content-type': 'application/vnd.docker.distribution.events.v1+json' };
      const answer = await cloud.app.inject({
        method: 'POST',
        url: '/cloudyard/v1/registry_events',
        headers,
        payload: none,
      });
      expect([none, answer.statusCode]).toEqual([none, 204]);
    }
    expect(await repositories()).toEqual([]);
    expect(await bytes()).toBe(0);
  });

  it('are accepted from hosts only', async () => {
    await fresh();
    for (const other of ['', 'Bearer x', `apikey ${cloud.admin}`]) {
      expect((await send([event('push', {})], other)).statusCode).toBe(401);
    }
    expect(await repositories()).toEqual([]);
  });
});

describe('a scan of the storage', () => {
  const scan = async (seen: Parameters<typeof store.putScan>[2], began: Date) =>
    transaction(cloud.db, async (tx) => {
      await store.putScan(tx, (await lockById(tx, made.id))!, seen, began);
    });
  const pushedAt = new Date('2026-11-20T09:00:00Z');
  const whole = {
    repositories: [
      {
        name: 'team/app',
        manifests: [{ digest: digest('a'), size: 1110, pushedAt }],
        tags: [{ name: 'v1', digest: digest('a'), pushedAt }],
      },
    ],
    blobs: new Map([
      [digest('a'), 10],
      [digest('d'), 1100],
    ]),
  };

  it('adds contents without events and removes missing contents', async () => {
    await fresh();
    await scan(whole, await store.now(cloud.db));
    expect(await bytes()).toBe(1110);
    expect(await artifacts()).toMatchObject([{ digest: digest('a'), tags: [{ name: 'v1' }] }]);
    await scan(whole, await store.now(cloud.db));
    expect((await storedBytes()).rows[0]).toEqual({ bytes: 1110, sum: 1110 });
    const [repository] = whole.repositories;
    await scan({ ...whole, repositories: [{ ...repository!, tags: [] }] }, await store.now(cloud.db));
    expect(await artifacts()).toMatchObject([{ tags: [] }]);
    await scan({ repositories: [], blobs: new Map() }, await store.now(cloud.db));
    expect([await repositories(), await bytes()]).toEqual([[], 0]);
  });

  it('keeps contents whose events arrived after it started', async () => {
    await fresh();
    const began = await store.now(cloud.db);
    await send([...blobs(), event('push', { tag: 'v1', references })]);
    await scan({ repositories: [], blobs: new Map() }, began);
    expect(await artifacts()).toMatchObject([{ tags: [{ name: 'v1' }] }]);
    expect(await bytes()).toBe(1110);
    await scan({ repositories: [], blobs: new Map() }, await store.now(cloud.db));
    expect([await repositories(), await bytes()]).toEqual([[], 0]);
  });

  it('does not restore contents that were removed after it started', async () => {
    await fresh();
    await send([event('push', { tag: 'v1', references })]);
    const began = await store.now(cloud.db);
    await send([event('delete', { mediaType: undefined })]);
    await scan(whole, began);
    expect(await artifacts()).toEqual([]);
    await scan(whole, await store.now(cloud.db));
    expect(await artifacts()).toHaveLength(1);
  });

  it('keeps pull counts and push times, which only events contain', async () => {
    await fresh();
    await send([event('push', { tag: 'v1', references }), event('pull', { tag: 'v1' })]);
    await scan(whole, await store.now(cloud.db));
    expect(await repositories()).toMatchObject([{ pull_count: 1 }]);
    expect(await artifacts()).toMatchObject([{ pushed_at: '2026-11-20T10:00:00Z', pulled_at: '2026-11-20T10:00:00Z' }]);
  });
});

describe('deletions', () => {
  it('return 404 for unknown contents and 400 for invalid names', async () => {
    await fresh();
    await send([event('push', { tag: 'v1' })]);
    const path = `${all}/${made.id}/repositories`;
    const of = (repository: string, rest = '') => `${path}/${encodeURIComponent(repository)}${rest}`;
    for (const absent of [
      of('other'),
      of('other', `/artifacts/${digest('a')}`),
      of('team/app', `/artifacts/${digest('b')}`),
      of('team/app', `/artifacts/${digest('a')}/tags/v2`),
    ]) {
      expect([absent, (await cloud.delete(absent)).status]).toEqual([absent, 404]);
    }
    for (const wrong of [of('../x'), of('UPPER'), of('a', '/artifacts/sha256:x'), of('a', '/artifacts/latest')]) {
      expect([wrong, (await cloud.delete(wrong)).status]).toEqual([wrong, 400]);
    }
    expect((await cloud.get(of('other', '/artifacts'))).status).toBe(404);
    expect((await cloud.delete(of('team/app', `/artifacts/${digest('a')}/tags/v1`))).status).toBe(204);
    expect(await artifacts()).toMatchObject([{ tags: [] }]);
    expect((await cloud.delete(of('team/app', `/artifacts/${digest('a')}`))).status).toBe(204);
    expect(await artifacts()).toEqual([]);
    expect((await cloud.delete(of('team/app'))).status).toBe(204);
    expect(await repositories()).toEqual([]);
  });

  it('and lists accept a name whose slashes are encoded twice, as the official SDKs document', async () => {
    await fresh();
    await send([event('push', { tag: 'v1' })]);
    const path = `${all}/${made.id}/repositories/team%252Fapp`;
    const artifact = `${path}/artifacts/${digest('a')}`;
    expect((await cloud.get(`${path}/artifacts`)).body.results).toMatchObject([{ digest: digest('a') }]);
    for (const one of [`${artifact}/tags/v1`, artifact, path]) expect((await cloud.delete(one)).status).toBe(204);
    expect(await repositories()).toEqual([]);
    expect((await cloud.get(`${path}%252F/artifacts`)).status).toBe(400);
  });

  it('of a tag keep it if a push has moved it to another artifact since the request', async () => {
    await fresh();
    await send([event('push', { tag: 'v1' }), event('push', { tag: 'v1', digest: digest('b') })]);
    await transaction(cloud.db, (tx) => store.remove(tx, made.id, 'team/app', digest('a'), 'v1'));
    const tagged = (await artifacts()).filter(({ tags }: any) => tags.length > 0);
    expect(tagged).toMatchObject([{ digest: digest('b'), tags: [{ name: 'v1' }] }]);
  });

  it('name the deleted contents in the audit log and in user actions', async () => {
    await fresh();
    await send([event('push', { tag: 'v1' })]);
    const [artifact] = await artifacts();
    const path = `${all}/${made.id}/repositories/team%2Fapp`;
    const paths = [`${path}/artifacts/${digest('a')}/tags/v1`, `${path}/artifacts/${digest('a')}`, path];
    for (const one of paths) expect((await cloud.delete(one)).status).toBe(204);
    const { results } = (await cloud.get('/cloud/v1/user_actions?api_group=registry&limit=3')).body;
    expect(results.map((action: any) => action.resources).reverse()).toMatchObject([
      [{ resource_type: 'registry_repository_tag', resource_id: `${artifact.tags[0].id}`, search_field: 'v1' }],
      [
        {
          ...{ resource_type: 'registry_repository_artifact', resource_id: `${artifact.id}` },
          resource_body: { digest: digest('a'), repository_id: artifact.repository_id },
        },
      ],
      [{ resource_type: 'registry_repository', resource_id: `${artifact.repository_id}`, search_field: 'team/app' }],
    ]);
    const entries = await cloud.get(`/cloudyard/v1/audit?table=registry_artifacts&row_id=${artifact.id}`);
    expect(entries.body.results).toMatchObject([{ operation: 'deleteRegistryArtifact' }]);
  });

  it('that are repeated before the worker has done them are recorded once', async () => {
    const { db } = withoutWorker;
    await setHosts(db, [1], 'registry.example:5000');
    const { id } = (await withoutWorker.post(all, { name: 'repeated' })).body;
    const pushed = { repository: 'app', digest: digest('a'), size: 1, tag: null, at: new Date() };
    await transaction(db, (tx) => store.putManifest(tx, id, pushed));
    const path = `${all}/${id}/repositories/app`;
    const deletions = [path, path, `${path}/artifacts/${digest('a')}`].map((one) => withoutWorker.delete(one));
    await vi.waitFor(async () => expect(await findRemovals(db, id)).toHaveLength(3), { timeout: 5000 });
    await withoutWorker.startWorker();
    expect((await Promise.all(deletions)).map(({ status }) => status)).toEqual([204, 204, 204]);
    const { results } = (await withoutWorker.get('/cloud/v1/user_actions?api_group=registry&limit=3')).body;
    const deleted = results.flatMap(({ resources }: any) => resources.map((each: any) => each.resource_type));
    expect(deleted.toSorted()).toEqual(['registry_repository', 'registry_repository_artifact']);
  });
});
