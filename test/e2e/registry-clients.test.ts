/** Requests of the OCI Distribution Specification that distribution 2.8 does not handle as it requires, through the gate. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { removeContents } from '../../src/drivers/distribution/storage.ts';
import { startSkopeo } from '../images.ts';
import { digestOf, manifestOf, openRegistryYard, type RegistryYard } from '../registry-yard.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 180_000 });

const parts = ['docker-registry', 'skopeo'] as const;
const config = '{"architecture":"amd64","os":"linux"}';

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'clients of the OCI specification', () => {
  let yard: RegistryYard;
  let prefix: string;

  /** A repository with the configuration of an image, and a token for it. */
  const begin = async (repository: string) => {
    const name = `${prefix}/${repository}`;
    const token = await yard.tokenFor('ci:pw-app', name);
    await yard.putBlob(token, name, config);
    return { name, token };
  };

  beforeAll(async () => {
    yard = await openRegistryYard();
    ({ prefix } = await yard.make('app'));
  });
  afterAll(() => yard?.cleanUp());

  it('get tags in lexical order and in pages, as skopeo follows them', async () => {
    const { name, token } = await begin('tags');
    const path = `/v2/${name}/tags/list`;
    for (const tag of ['v2', 'latest', 'v10', 'V3', 'v1']) {
      expect((await yard.putManifest(token, name, tag, manifestOf(config, []))).status).toBe(201);
    }
    const first = await yard.call('GET', `${path}?n=2`, { token });
    expect([first.status, JSON.parse(first.text)]).toEqual([200, { name, tags: ['V3', 'latest'] }]);
    expect(first.headers.link).toBe(`<${path}?n=2&last=latest>; rel="next"`);
    const next = await yard.call('GET', `${path}?n=3&last=latest`, { token });
    expect([JSON.parse(next.text).tags, next.headers.link]).toEqual([['v1', 'v10', 'v2'], undefined]);
    expect(await yard.call('GET', `${path}?n=-1`, { token })).toMatchObject({
      status: 400,
      code: 'PAGINATION_NUMBER_INVALID',
    });
    // Access is checked first.
    for (const query of ['', '?n=1', '?n=-1']) {
      const refused = await yard.call('GET', `${path}${query}`);
      expect([refused.status, refused.headers['www-authenticate']]).toEqual([
        401,
        expect.stringContaining(`${name}:pull`),
      ]);
    }
    const other = await yard.tokenFor('ci:pw-app', `${prefix}/other`);
    expect((await yard.call('GET', path, { token: other })).status).toBe(401);
    expect(await yard.call('GET', `/v2/${prefix}/other/tags/list`, { token: other })).toMatchObject({
      status: 404,
      code: 'NAME_UNKNOWN',
    });
    const listing = ['list-tags', '--tls-verify=false', '--creds', 'ci:pw-app'];
    const { code, output } = await startSkopeo([...listing, `docker://127.0.0.1:${yard.port}/${name}`]).ended;
    expect([code, JSON.parse(output).Tags]).toEqual([0, ['V3', 'latest', 'v1', 'v10', 'v2']]);
  });

  it('push the tags of an image while the API deletes it', async () => {
    const { name, token } = await begin('races');
    const manifest = manifestOf(config, []);
    const digest = digestOf(JSON.stringify(manifest));
    const replies = new Map<number, number>();
    let isOver = false;
    const push = async (tag: string) => {
      for (let i = 0; i < 150; i += 1) {
        const { status } = await yard.putManifest(token, name, tag, manifest);
        replies.set(status, (replies.get(status) ?? 0) + 1);
      }
    };
    // As the worker does for a deletion of the API, but all the time.
    const remove = async () => {
      while (!isOver) await removeContents(yard.layout, { prefix, repository: 'races', digest, tag: null });
    };
    const removals = [remove(), remove()];
    await Promise.all(['v0', 'v1', 'v2', 'v3'].map(push));
    isOver = true;
    await Promise.all(removals);
    expect([...replies]).toEqual([[201, 600]]);
  });

  it('get 416 for a chunk out of order, and continue where the upload ends', async () => {
    const { name, token } = await begin('chunks');
    const bytes = Buffer.from('0123456789');
    const digest = digestOf(bytes);
    const { location } = await yard.beginUpload(token, name);
    const chunk = (path: string, first: number, last: number, method = 'PATCH') =>
      yard.call(method, path, {
        token,
        body: bytes.subarray(first, last + 1),
        headers: { 'content-range': `${first}-${last}` },
      });
    expect(await chunk(location, 4, 6)).toMatchObject({ status: 416, code: 'RANGE_INVALID' });
    const begun = await chunk(location, 0, 3);
    expect([begun.status, begun.headers.range]).toEqual([202, '0-3']);
    const after = String(begun.headers.location);
    for (const [first, last] of [
      [0, 3],
      [7, 9],
    ] as const) {
      expect((await chunk(after, first, last)).status).toBe(416);
    }
    expect((await chunk(`${after}&digest=${digest}`, 7, 9, 'PUT')).status).toBe(416);
    const state = await yard.call('GET', after, { token });
    expect([state.status, state.headers.range]).toEqual([204, '0-3']);
    expect((await chunk(`${state.headers.location}&digest=${digest}`, 4, 9, 'PUT')).status).toBe(201);
    expect((await yard.call('GET', `/v2/${name}/blobs/${digest}`, { token })).text).toBe(String(bytes));
  });

  it('get 400 for a push with a digest that is malformed or of another algorithm', async () => {
    const { name, token } = await begin('digests');
    const sha512 = `sha512:${'0'.repeat(128)}`;
    const { location } = await yard.beginUpload(token, name);
    const refused = { status: 400, code: 'DIGEST_INVALID' };
    expect(await yard.putManifest(token, name, 'sha256:malformed', manifestOf(config, []))).toMatchObject(refused);
    expect(await yard.call('PUT', `${location}&digest=${sha512}`, { token, body: 'x' })).toMatchObject(refused);
    for (const path of [`/v2/${name}/manifests/sha256:malformed`, `/v2/${name}/blobs/${sha512}`]) {
      expect((await yard.call('GET', path, { token })).status).toBe(404);
    }
  });
});
