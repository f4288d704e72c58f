/** Unfinished uploads count towards a registry's limit, and one valid token cannot exceed it. */
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { bootstrapToken } from '../processes.ts';
import { until } from '../until.ts';
import { digestOf, manifestOf, openRegistryYard, type RegistryYard, type Reply } from '../registry-yard.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 });

const mib = 1024 * 1024;
const limit = 5 * 1024 * mib;

/** Sends zeros until the server ends the request, or `most` bytes are sent. */
async function stream(
  yard: RegistryYard,
  path: string,
  token: string,
  most: number,
): Promise<{ sent: number; reply: Reply | null }> {
  let reply: Reply | null = null;
  let failed = false;
  const part = Buffer.alloc(mib);
  const upload = yard.begin('PATCH', path, { token }, (each) => (reply = each));
  upload.on('error', () => (failed = true));
  let sent = 0;
  const isOver = () => failed || reply !== null || upload.destroyed;
  while (sent < most && !isOver()) {
    if (!upload.write(part)) {
      await Promise.race([new Promise((resolve) => upload.once('drain', resolve)), until(isOver, 60, 'the end')]);
    }
    sent += part.length;
  }
  if (!isOver()) upload.end();
  await until(isOver, 60, 'an answer');
  upload.destroy();
  return { sent, reply };
}

describe.skipIf(!requires('docker-registry'))(
  skipReason('docker-registry') ?? 'uploads that are never finished',
  () => {
    let yard: RegistryYard;

    beforeAll(async () => {
      yard = await openRegistryYard({ CLOUDYARD_REGISTRY_PATIENCE_SECONDS: '6' });
    });
    afterAll(() => yard?.cleanUp());

    it('cannot be streamed endlessly: the stream is stopped at the limit of the registry', async () => {
      const { prefix } = await yard.make('endless');
      const name = `${prefix}/a`;
      const free = 16 * mib;
      yard.fillWithUpload(name, limit - free);
      const token = await yard.tokenFor('ci:pw-endless', name);
      const { location } = await yard.beginUpload(token, name);
      const before = yard.bytesIn(yard.layout.storage);
      const { sent, reply } = await stream(yard, location, token, free + 100 * mib);
      expect(yard.bytesIn(yard.layout.storage) - before).toBeLessThanOrEqual(free);
      expect(sent).toBeLessThan(free + 100 * mib);
      expect(reply).toMatchObject({
        status: 403,
        code: 'DENIED',
        message: expect.stringContaining('storage_limit is 5 GiB'),
      });
    });

    it('cannot exceed the limit together in parallel uploads', async () => {
      const { prefix } = await yard.make('many');
      const names = ['a', 'b', 'c', 'd'].map((each) => `${prefix}/${each}`);
      const free = 8 * mib;
      yard.fillWithUpload(names[0]!, limit - free);
      const token = await yard.tokenFor('ci:pw-many', ...names);
      const uploads = await Promise.all(names.map((name) => yard.beginUpload(token, name)));
      const before = yard.bytesIn(yard.layout.storage);
      await Promise.all(uploads.map(({ location }) => stream(yard, location, token, 24 * mib)));
      expect(yard.bytesIn(yard.layout.storage) - before).toBeLessThanOrEqual(free);
    });

    it('cannot become blobs or manifests past the limit', async () => {
      const { prefix } = await yard.make('blobs');
      const name = `${prefix}/a`;
      yard.fillWithUpload(name, limit - 3 * mib);
      const token = await yard.tokenFor('ci:pw-blobs', name);
      const statuses = [];
      for (let i = 0; i < 4; i += 1) {
        statuses.push((await yard.putBlob(token, name, Buffer.alloc(mib, i))).reply.status);
      }
      expect(statuses).toEqual([201, 201, 201, 403]);
      expect(await yard.putManifest(token, name, 'v1', manifestOf('{}', []))).toMatchObject({
        status: 403,
        code: 'DENIED',
      });
    });

    it('cannot be exceeded by mounts of blobs of another registry, while mounts in the registry need no space', async () => {
      const [source, target] = [await yard.make('source'), await yard.make('target')];
      const [from, own, name] = [`${source.prefix}/a`, `${target.prefix}/a`, `${target.prefix}/b`];
      const tokenFor = (...names: string[]) => yard.tokenFor(`apikey:${bootstrapToken}`, ...names);
      const token = await tokenFor(from, own, name);
      const blobs = await Promise.all([1, 2, 3].map((byte) => yard.putBlob(token, from, Buffer.alloc(2 * mib, byte))));
      yard.fillWithUpload(own, limit - 7 * mib);
      const stored = await yard.putBlob(token, own, Buffer.alloc(2 * mib, 9));
      const mount = (digest: string, of: string, by = token, headers = {}) =>
        yard.call('POST', `/v2/${name}/blobs/uploads/?mount=${digest}&from=${of}`, { token: by, headers });
      const replies = await Promise.all(blobs.map(({ digest }) => mount(digest, from)));
      expect(replies.map(({ status }) => status).sort()).toEqual([201, 201, 403]);
      const [refused] = replies.flatMap(({ status }, i) => (status === 403 ? [blobs[i]!.digest] : []));
      expect(await mount(refused!, from, token, { 'if-none-match': `"${refused}"`, range: 'bytes=0-0' })).toMatchObject(
        {
          status: 403,
          message: expect.stringContaining('storage_limit is 5 GiB'),
        },
      );
      expect((await mount(stored.digest, own)).status).toBe(201);
      // Without access to the other registry, the response does not depend on its blobs.
      const limited = await tokenFor(name);
      for (const digest of [refused!, digestOf('absent')])
        expect((await mount(digest, from, limited)).status).toBe(401);
    });

    it('count as used storage: a full registry gets no push token', async () => {
      const { prefix, path } = await yard.make('counted');
      const name = `${prefix}/a`;
      const token = await yard.tokenFor('ci:pw-counted', name);
      const { location, id } = await yard.beginUpload(token, name);
      yard.fillWithUpload(name, limit, id);
      await yard.call('PATCH', location, { token, body: 'x' });
      const login = async () => yard.login('ci:pw-counted', [`repository:${name}:pull,push`]);
      await until(
        async () => {
          // The upload continues, so that it is not removed as idle.
          yard.fillWithUpload(name, limit, id);
          return (await login()).status === 401;
        },
        60,
        'a refusal',
      );
      expect((await login()).body['message']).toContain('is full');
      expect((await yard.yard.get(path)).body.storage_used).toBeGreaterThanOrEqual(limit);
      await until(async () => (await login()).status === 200, 60, 'the removal of the uploads');
      expect((await yard.yard.get(path)).body.storage_used).toBe(0);
    });

    it('cannot be started without limit', async () => {
      const { prefix } = await yard.make('sessions');
      const name = `${prefix}/a`;
      const token = await yard.tokenFor('ci:pw-sessions', name);
      const begun = await Promise.all(Array.from({ length: 300 }, () => yard.beginUpload(token, name)));
      expect(readdirSync(join(yard.layout.repositories, name, '_uploads')).length).toBeLessThanOrEqual(200);
      const refused = begun.map(({ reply }) => reply).filter(({ status }) => status !== 202);
      expect(refused.length).toBeGreaterThan(0);
      for (const reply of refused) expect(reply).toMatchObject({ status: 429, code: 'TOOMANYREQUESTS' });
      expect(Number(refused[0]!.headers['retry-after'])).toBeGreaterThan(0);
    });

    it('can be finished with any type of content, such as that of a form, which curl sends', async () => {
      const { prefix } = await yard.make('typed');
      const name = `${prefix}/a`;
      const token = await yard.tokenFor('ci:pw-typed', name);
      const bytes = Buffer.alloc(1000, 7);
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const { location } = await yard.beginUpload(token, name);
      const sent = await yard.call('PATCH', location, { token, body: bytes, headers });
      expect(sent.status).toBe(202);
      const end = `${String(sent.headers.location)}&digest=${digestOf(bytes)}`;
      expect((await yard.call('PUT', end, { token, headers })).status).toBe(201);
      const whole = `${(await yard.beginUpload(token, name)).location}&digest=${digestOf(bytes)}`;
      expect((await yard.call('PUT', whole, { token, body: bytes, headers })).status).toBe(201);
    });

    it('are removed after the idle time', async () => {
      const { prefix } = await yard.make('idle');
      const name = `${prefix}/a`;
      const token = await yard.tokenFor('ci:pw-idle', name);
      const { location } = await yard.beginUpload(token, name);
      await yard.call('PATCH', location, { token, body: Buffer.alloc(mib) });
      const folder = join(yard.layout.repositories, name, '_uploads');
      expect(readdirSync(folder)).toHaveLength(1);
      await until(() => readdirSync(folder).length === 0, 60, 'the removal of the upload');
      expect((await yard.call('PATCH', location, { token, body: 'more' })).status).toBe(404);
      expect((await yard.putBlob(token, name, 'a later push')).reply.status).toBe(201);
    });

    it('cannot continue in a deleted registry and leave nothing in quarantine', async () => {
      const { prefix, path } = await yard.make('gone');
      const name = `${prefix}/a`;
      const token = await yard.tokenFor('ci:pw-gone', name);
      const { location } = await yard.beginUpload(token, name);
      let reply: Reply | null = null;
      let failed = false;
      const upload = yard.begin('PATCH', location, { token }, (each) => (reply = each));
      upload.on('error', () => (failed = true));
      upload.write(Buffer.alloc(mib));
      const folder = join(yard.layout.repositories, prefix);
      // Distribution keeps the last bytes in memory.
      await until(() => yard.bytesIn(folder) > mib / 2, 60, 'the first bytes to be stored');
      expect((await yard.yard.delete(path)).status).toBe(204);
      await until(() => (upload.write('more'), failed || reply !== null), 60, 'the end of the upload');
      upload.destroy();
      for (let i = 0; i < 3; i += 1) expect((await yard.putBlob(token, name, `after ${i}`)).reply.status).toBe(404);
      await until(() => !existsSync(folder), 30, 'the removal of the upload');
      expect(readdirSync(yard.layout.quarantine)).toEqual([]);
    });
  },
);

describe.skipIf(!requires('docker-registry', 'root'))(
  skipReason('docker-registry', 'root') ?? 'a host whose disk is nearly full',
  () => {
    let yard: RegistryYard;
    let mounted: string;

    beforeAll(async () => {
      yard = await openRegistryYard();
      await yard.server.stop();
      mounted = join(yard.yard.dataDir, 'registries');
      mkdirSync(mounted, { recursive: true });
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,nr_inodes=4000', 'tmpfs', mounted]);
      yard.server = await yard.yard.start(['start']);
    });
    afterAll(async () => {
      await yard?.server.stop();
      if (mounted) execFileSync('umount', ['-l', mounted]);
      yard?.cleanUp();
    });

    it('refuses pushes and still serves pulls', async () => {
      const { prefix } = await yard.make('reserve');
      const name = `${prefix}/a`;
      const token = await yard.tokenFor('ci:pw-reserve', name);
      const stored = await yard.putBlob(token, name, Buffer.alloc(mib, 1));
      expect(stored.reply.status).toBe(201);
      let last: Reply | undefined;
      await until(
        async () => {
          ({ reply: last } = await yard.putBlob(token, name, Buffer.alloc(4 * mib, Math.random() * 255)));
          return last.status !== 201;
        },
        60,
        'a refusal',
      );
      const next = async () => (await yard.beginUpload(token, name)).reply;
      await until(async () => (await next()).status === 507, 30, 'refused uploads');
      expect(await next()).toMatchObject({ status: 507, code: 'DENIED' });
      expect((await yard.call('GET', `/v2/${name}/blobs/${stored.digest}`, { token })).status).toBe(200);
      expect(digestOf(Buffer.alloc(mib, 1))).toBe(stored.digest);
    });
  },
);
