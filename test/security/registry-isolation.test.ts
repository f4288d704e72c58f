/** A user of one registry cannot read or change another registry, on real distribution. */
import { readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { until } from '../until.ts';
import { digestOf, manifestOf, openRegistryYard, type RegistryYard } from '../registry-yard.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 });

const config = '{"architecture":"amd64","os":"linux"}';
const nondistributable = 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip';
const secretLayer = 'the layer that only its owner may read';

describe.skipIf(!requires('docker-registry'))(skipReason('docker-registry') ?? 'a user of another registry', () => {
  let yard: RegistryYard;
  let mine: string;
  let theirs: string;
  let token: string;
  let owner: string;
  let stolen: string;

  const readable = async (name: string, digest: string, by = token) =>
    (await yard.call('GET', `/v2/${name}/blobs/${digest}`, { token: by })).status;

  beforeAll(async () => {
    yard = await openRegistryYard({ CLOUDYARD_REGISTRY_PATIENCE_SECONDS: '2' });
    const [own, victim] = [await yard.make('mine'), await yard.make('theirs')];
    [mine, theirs] = [`${own.prefix}/a`, `${victim.prefix}/a`];
    owner = await yard.tokenFor('ci:pw-theirs', theirs);
    stolen = (await yard.putBlob(owner, theirs, secretLayer)).digest;
    await yard.putBlob(owner, theirs, config);
    const manifest = manifestOf(config, [{ digest: stolen, size: secretLayer.length }]);
    expect((await yard.putManifest(owner, theirs, 'v1', manifest)).status).toBe(201);
    token = await yard.tokenFor('ci:pw-mine', mine, theirs);
  });
  afterAll(() => yard?.cleanUp());

  it('cannot read or delete blobs, manifests and tags', async () => {
    for (const [method, path] of [
      ['GET', `/v2/${theirs}/blobs/${stolen}`],
      ['HEAD', `/v2/${theirs}/blobs/${stolen}`],
      ['DELETE', `/v2/${theirs}/blobs/${stolen}`],
      ['GET', `/v2/${theirs}/manifests/v1`],
      ['PUT', `/v2/${theirs}/manifests/v2`],
      ['DELETE', `/v2/${theirs}/manifests/${stolen}`],
      ['GET', `/v2/${theirs}/tags/list`],
      ['POST', `/v2/${theirs}/blobs/uploads/`],
      ['GET', '/v2/_catalog'],
      ['GET', '/v2/_catalog?n=1000000'],
    ] as const) {
      expect([method, path, (await yard.call(method, path, { token })).status]).toEqual([method, path, 401]);
    }
    expect(await readable(mine, stolen)).toBe(404);
  });

  it('cannot mount blobs', async () => {
    const mount = `/v2/${mine}/blobs/uploads/?mount=${stolen}&from=${theirs}`;
    expect((await yard.call('POST', mount, { token })).status).toBe(401);
    // The same mount in a form body.
    await yard.call('POST', `/v2/${mine}/blobs/uploads/`, {
      token,
      body: `mount=${stolen}&from=${theirs}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    await yard.call('POST', `/v2/${mine}/blobs/uploads/?mount=${stolen}&from=${mine}`, { token });
    expect(await readable(mine, stolen)).toBe(404);
  });

  it('cannot get a blob through a manifest that names it', async () => {
    await yard.putBlob(token, mine, config);
    const theft = { digest: stolen, size: secretLayer.length };
    const refused = await yard.putManifest(token, mine, 'layers', manifestOf(config, [theft]));
    expect(refused).toMatchObject({ status: 400, code: 'MANIFEST_BLOB_UNKNOWN' });
    for (const [tag, more] of Object.entries({
      subject: { subject: { ...theft, mediaType: 'application/vnd.oci.image.manifest.v1+json' } },
      blobs: { blobs: [theft] },
      elsewhere: { layers: [{ ...theft, mediaType: nondistributable, urls: ['https://example.com/layer'] }] },
    })) {
      expect([tag, (await yard.putManifest(token, mine, tag, manifestOf(config, [], more))).status]).toEqual([
        tag,
        201,
      ]);
    }
    // Garbage collection reads those manifests several times meanwhile.
    for (let i = 0; i < 2; i += 1) {
      await yard.garbageCollected(token, mine);
      expect(await readable(mine, stolen)).toBe(404);
    }
    owner = await yard.tokenFor('ci:pw-theirs', theirs);
    expect(await readable(theirs, stolen, owner)).toBe(200);
  });

  it('cannot delete a blob that both registries have', async () => {
    token = await yard.tokenFor('ci:pw-mine', mine);
    expect((await yard.putBlob(token, mine, secretLayer)).reply.status).toBe(201);
    expect((await yard.call('DELETE', `/v2/${mine}/blobs/${stolen}`, { token })).status).toBe(202);
    await yard.garbageCollected(token, mine);
    await yard.garbageCollected(token, mine);
    expect(await readable(theirs, stolen, owner)).toBe(200);
    expect(await readable(mine, stolen)).toBe(404);
  });

  it('cannot store other bytes under a digest', async () => {
    const digest = digestOf('a blob that another user will push');
    const { location } = await yard.beginUpload(token, mine);
    const path = `${location}&digest=${digest}`;
    expect((await yard.call('PUT', path, { token, body: 'poison' })).status).toBe(400);
    expect(await readable(mine, digest)).toBe(404);
    const sha512 = `${location}&digest=sha512:${'0'.repeat(128)}`;
    expect(await yard.call('PUT', sha512, { token, body: 'x' })).toMatchObject({ status: 400, code: 'DIGEST_INVALID' });
  });

  it('cannot leave its registry through a repository name', async () => {
    const [prefix, victim] = [mine.split('/')[0]!, theirs.split('/')[0]!];
    const before = readdirSync(yard.layout.repositories).sort();
    for (const name of [
      `${prefix}/../${victim}/a`,
      `${prefix}/%2e%2e/${victim}/a`,
      `${prefix}/..%2f${victim}/a`,
      `${prefix}//a`,
      `${prefix}/./a`,
      `${prefix}/A`,
      `${prefix}/a\u00e9`,
      `${prefix}/a%00`,
      `${prefix}/_uploads`,
      `${prefix}/a/_layers`,
      `${prefix}/${'a'.repeat(300)}`,
      `${prefix}`,
      `../${victim}/a`,
      `${prefix}\\..\\${victim}/a`,
    ]) {
      for (const path of [`/v2/${name}/blobs/uploads/`, `/v2/${name}/manifests/v1`, `/v2/${name}/blobs/${stolen}`]) {
        const status = await rawStatus(yard.port, path.endsWith('/') ? 'POST' : 'GET', path, token);
        expect([path, status >= 400 && status < 500]).toEqual([path, true]);
      }
    }
    const absolute = `http://127.0.0.1:${yard.port}/v2/${mine}/blobs/uploads/`;
    expect(await rawStatus(yard.port, 'POST', absolute, token)).toBe(404);
    expect(readdirSync(yard.layout.repositories).sort()).toEqual(before);
  });

  it('gets 400 for an invalid manifest of any size', async () => {
    const layer = { digest: digestOf(config), size: config.length, mediaType: nondistributable };
    for (const manifest of [
      {},
      'null',
      { schemaVersion: 2, config: { digest: 'sha256:ab', size: 2 } },
      `{"schemaVersion":2,"SchemaVersion":1,"config":${JSON.stringify(layer)}}`,
      manifestOf(config, [], { layers: [{ ...layer, urls: ['ftp://example.com/layer'] }] }),
      manifestOf(config, [], { schemaVersion: 1, annotations: { filler: 'x'.repeat(3 * 1024 * 1024) } }),
      manifestOf(config, [], {
        layers: Array.from({ length: 30_000 }, (_, i) => ({ ...layer, digest: `sha999:${i}` })),
      }),
    ]) {
      const { status, code } = await yard.putManifest(token, mine, 'invalid', manifest);
      const start = JSON.stringify(manifest).slice(0, 300);
      expect([start, status, code]).toEqual([start, 400, 'MANIFEST_INVALID']);
    }
  });

  it('gets 405 for the deletion of a tag, which distribution does not support', async () => {
    expect(await yard.call('DELETE', `/v2/${mine}/manifests/v1`, { token })).toMatchObject({
      status: 405,
      code: 'UNSUPPORTED',
    });
  });

  it('cannot send an endless manifest', async () => {
    const huge = JSON.stringify(manifestOf(config, [], { annotations: { filler: 'x'.repeat(5 * 1024 * 1024) } }));
    const reply = await yard.putManifest(token, mine, 'huge', huge);
    expect(reply).toMatchObject({ status: 413, code: 'MANIFEST_INVALID' });
  });

  it('learns no path of the host from errors of the storage', async () => {
    const { digest } = await yard.putBlob(token, mine, 'a layer that cannot be read');
    // A link to itself.
    rmSync(yard.layout.data(digest));
    symlinkSync('data', yard.layout.data(digest));
    await yard.putBlob(token, mine, config);
    const path = `/v2/${mine}/blobs/${digest}`;
    const layers = [{ digest, size: 1 }];
    const replies = [
      await yard.call('GET', path, { token }),
      await yard.call('GET', path, { token, headers: { range: 'bytes=0-1' } }),
      await yard.putManifest(token, mine, 'v1', manifestOf(config, layers)),
      await yard.putManifest(token, mine, 'v1', manifestOf('missing', layers)),
    ];
    expect(replies.map(({ status, code }) => [status, code])).toEqual([
      [500, 'UNKNOWN'],
      [500, 'UNKNOWN'],
      [500, 'UNKNOWN'],
      [400, 'MANIFEST_BLOB_UNKNOWN'],
    ]);
    expect(replies[3]!.text).toContain(digestOf('missing'));
    for (const { text } of replies) expect(text).not.toMatch(/filesystem|docker\/registry/);
    const log = readFileSync(join(yard.layout.distribution, 'distribution.log'), 'utf8');
    expect(log).toContain(`${digest.slice('sha256:'.length)}/data: too many levels of symbolic links`);
  });

  it('cannot disturb usage counts with false sizes in manifests', async () => {
    const { prefix, path } = await yard.make('claims');
    const name = `${prefix}/a`;
    const by = await yard.tokenFor('ci:pw-claims', name);
    await yard.putBlob(by, name, config);
    const layer = Buffer.alloc(100_000, 7);
    // The sum of these does not fit into 64 bits.
    const most = Array.from({ length: 1100 }, (_, i) => ({
      ...{ digest: digestOf(`none ${i}`), size: Number.MAX_SAFE_INTEGER },
    }));
    expect((await yard.putManifest(by, name, 'most', manifestOf(config, [], { blobs: most }))).status).toBe(201);
    for (const size of [-5, 1.5, 1e300]) {
      const manifest = manifestOf(config, [], { blobs: [{ digest: digestOf('none'), size }] });
      expect((await yard.putManifest(by, name, `s${Math.trunc(size % 100)}`.replace('-', 'm'), manifest)).status).toBe(
        201,
      );
    }
    expect((await yard.putBlob(by, name, layer)).reply.status).toBe(201);
    const used = async (of: string) => (await yard.yard.get(of)).body.storage_used;
    await until(async () => (await used(path)) > 100_000, 60, 'the layer to be counted');
    // The sweep continues and counts the next registry.
    const next = await yard.make('next');
    const other = await yard.tokenFor('ci:pw-next', `${next.prefix}/a`);
    expect((await yard.putBlob(other, `${next.prefix}/a`, 'five!')).reply.status).toBe(201);
    await until(async () => (await used(next.path)) === 5, 60, 'the count of another registry');
    await until(async () => (await used(next.path)) === 0, 60, 'the removal of unreferenced blobs');
    expect(await used(path)).toBeLessThan(1_000_000);
  });

  it('cannot report pushes to the API', async () => {
    const url = `${yard.yard.url}/cloudyard/v1/registry_events`;
    const target = { repository: theirs, digest: stolen, mediaType: 'application/octet-stream', size: 2 ** 50 };
    const event = { id: 'forged', timestamp: new Date().toISOString(), action: 'push', target };
    for (const authorization of [
      undefined,
      'Bearer ',
      `Bearer ${token}`,
      `apikey ${yard.yard.env['CLOUDYARD_BOOTSTRAP_TOKEN']}`,
    ]) {
      const answer = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/vnd.docker.distribution.events.v1+json',
          ...(authorization && { authorization }),
        },
        body: JSON.stringify({ events: [event] }),
      });
      expect(answer.status).toBe(401);
    }
  });
});

/** Sends a path without normalization. Returns the status. */
function rawStatus(port: number, method: string, path: string, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => {
      const lines = [`${method} ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${token}`, 'Connection: close'];
      socket.write(Buffer.from([...lines, 'Content-Length: 0', '', ''].join('\r\n'), 'utf8'));
    });
    socket.on('data', (part) => (text += part.toString('latin1')));
    socket.on('error', reject);
    // A connection that is closed without a response counts as refused.
    socket.on('close', () => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 400)));
  });
}
