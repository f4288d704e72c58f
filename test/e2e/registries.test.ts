/** Registries on real distribution, over the API and with skopeo and plain requests as clients. */
import { existsSync, readdirSync, readFileSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { liveProcess } from '../../src/platform/running-processes.ts';
import { deleteImage, makeImage, pull, push, startSkopeo, type TestImage } from '../images.ts';
import { bootstrapToken, openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { bytesIn } from '../registry-yard.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });

const parts = ['docker-registry', 'skopeo'] as const;
const registries = '/cloud/v1/registries/1/1';
const mib = 1024 * 1024;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'registries over the API and skopeo', () => {
  let yard: Yard;
  let server: Running;
  let image: TestImage;
  let port: number;

  const make = async (name: string, users: object[] = [{ name: 'ci', duration: -1, secret: 'pw' }]) => {
    const { status, body } = await yard.post(registries, { name });
    expect(status).toBe(201);
    const path = `${registries}/${body.id}`;
    expect((await yard.post(`${path}/users/batch`, { users })).status).toBe(201);
    return { path, url: body.url as string };
  };
  const pushed = async (source: string, to: string, credentials = 'ci:pw') => {
    const { code, output } = await push(source, to, credentials).ended;
    expect([code, output]).toEqual([0, expect.any(String)]);
  };
  /** Starts a push. Resolves when the host has stored more than this number of bytes, or the push has ended. */
  const pushUntil = async (bytes: number, source: string, to: string) => {
    const storage = join(yard.dataDir, 'registries/storage');
    const enough = bytesIn(storage) + bytes;
    let hasEnded = false;
    const pushing = push(source, to, 'ci:pw');
    void pushing.ended.then(() => (hasEnded = true));
    await until(() => hasEnded || bytesIn(storage) > enough, 30, `more than ${bytes} bytes`);
    return pushing;
  };
  const artifacts = async (path: string, repository: string) =>
    (await yard.get(`${path}/repositories/${encodeURIComponent(repository)}/artifacts`)).body;
  const stored = async (path: string) => (await yard.get(path)).body.storage_used as number;
  const pidOfHost = () => {
    const file = join(yard.dataDir, 'registries/distribution/distribution.pid');
    return existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
  };
  const blobFile = (digest: string) =>
    join(
      yard.dataDir,
      'registries/storage/docker/registry/v2/blobs/sha256',
      digest.slice(7, 9),
      digest.slice(7),
      'data',
    );
  /** Gets a token as a client does, with the challenge of the host. */
  const tokenFor = async (credentials: string, ...scopes: string[]) => {
    const challenge = (await fetch(`http://127.0.0.1:${port}/v2/`)).headers.get('www-authenticate')!;
    const [, realm, service] = /realm="([^"]+)",service="([^"]+)"/.exec(challenge)!;
    const query = new URLSearchParams({ service: service! });
    for (const scope of scopes) query.append('scope', scope);
    const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
    const answer = await fetch(`${realm}?${query}`, { headers: { authorization } });
    return { status: answer.status, body: (await answer.json()) as Record<string, string> };
  };

  beforeAll(async () => {
    port = await freePort();
    yard = await openYard({
      CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
      CLOUDYARD_REGISTRY_DRIVER: 'distribution',
      CLOUDYARD_REGISTRY_PORT: String(port),
      // Garbage collection would take the blobs of a push that stalls for longer.
      CLOUDYARD_REGISTRY_PATIENCE_SECONDS: '10',
      CLOUDYARD_SWEEP_SECONDS: '1',
    });
    server = await yard.start(['start']);
    image = makeImage(join(yard.folder, 'image'), [300_000, 700_000]);
  });
  afterAll(() => yard?.cleanUp());

  it('reports the driver of registries as real', async () => {
    expect(server.stdout()).toMatch(/registries +distribution +real/);
  });

  it('accepts pull secrets, which need no setting of the operator to be verified', async () => {
    const { url } = await make('private', [{ name: 'puller', duration: -1, secret: 'pw', read_only: true }]);
    const { source } = makeImage(join(yard.folder, 'of-private'), [1000]);
    await pushed(source, `${url}/app:v1`, `apikey:${bootstrapToken}`);
    const secret = { name: 'private', registry: url, login: 'puller', password: 'wrong' };
    expect((await yard.post('/cloud/v1/caas/secrets/1/1', secret)).status).toBe(200);
    const ours = '/cloudyard/v1/caas/secrets/1/1/private';
    expect((await yard.post(`${ours}/verify`)).body).toMatchObject({ verified: false, outcome: 'refused' });
    await yard.patch('/cloud/v1/caas/secrets/1/1/private', { password: 'pw' });
    expect((await yard.post(`${ours}/verify`)).body).toMatchObject({ verified: true, outcome: 'accepted' });
    const file = join(yard.folder, 'pull.json');
    writeFileSync(file, JSON.stringify((await yard.get(`${ours}/dockerconfigjson`)).body));
    const pulling = ['copy', '--src-tls-verify=false', '--authfile', file, `docker://${url}/app:v1`];
    expect((await startSkopeo([...pulling, `oci:${join(yard.folder, 'pulled')}:latest`]).ended).code).toBe(0);
  });

  it('stores, lists, returns and deletes an image', async () => {
    const { path, url } = await make('app');
    expect(url).toBe(`127.0.0.1:${port}/app-${path.split('/').at(-1)}`);
    const login = ['login', '--tls-verify=false', '--authfile', join(yard.folder, 'auth.json')];
    const output = await startSkopeo([...login, '-u', 'ci', '-p', 'pw', `127.0.0.1:${port}`]).ended;
    expect(output).toMatchObject({ code: 0, output: expect.stringContaining('Login Succeeded') });

    await pushed(image.source, `${url}/team/app:v1`);
    await until(async () => (await stored(path)) === image.size, 10, 'every byte counted');
    const back = join(yard.folder, 'back');
    expect((await pull(`${url}/team/app:v1`, back, 'ci:pw').ended).code).toBe(0);
    for (const digest of image.layers) expect(existsSync(blobFile(digest))).toBe(true);
    await until(async () => (await yard.get(`${path}/repositories`)).body.results[0]?.pull_count === 1, 10, 'a pull');
    const { results } = await artifacts(path, 'team/app');
    expect(results).toMatchObject([{ digest: image.manifest, size: image.size, tags: [{ name: 'v1' }] }]);
    expect(Date.parse(results[0].pulled_at)).toBeGreaterThan(Date.now() - 60_000);

    expect((await deleteImage(`${url}/team/app:v1`, 'ci:pw').ended).code).toBe(0);
    await until(async () => (await artifacts(path, 'team/app')).count === 0, 10, 'the event of the deletion');
    await until(async () => (await stored(path)) === 0, 30, 'the garbage to be collected');
    await until(() => !existsSync(blobFile(image.layers[0]!)), 30, 'the bytes to be gone');
  });

  it('deletes tags, artifacts and repositories before it responds', async () => {
    const { path, url } = await make('del');
    for (const tag of ['v1', 'v2']) await pushed(image.source, `${url}/a:${tag}`);
    await until(async () => (await artifacts(path, 'a')).results?.[0]?.tags.length === 2, 10, 'two tags');
    const artifact = `${path}/repositories/a/artifacts/${image.manifest}`;
    const inspect = (tag: string) =>
      startSkopeo(['inspect', '--raw', '--tls-verify=false', '--creds', 'ci:pw', `docker://${url}/a${tag}`]).ended;
    expect((await yard.delete(`${artifact}/tags/v1`)).status).toBe(204);
    expect((await inspect(':v1')).output).toContain('manifest unknown');
    expect((await inspect(':v2')).code).toBe(0);
    expect((await yard.delete(`${artifact}/tags/v1`)).status).toBe(404);
    expect((await yard.delete(artifact)).status).toBe(204);
    expect((await inspect(`@${image.manifest}`)).output).toContain('manifest unknown');
    expect((await yard.delete(artifact)).status).toBe(404);
    await pushed(image.source, `${url}/a:v3`);
    await until(async () => (await artifacts(path, 'a')).count === 1, 10, 'the artifact');
    expect((await yard.delete(`${path}/repositories/a`)).status).toBe(204);
    expect((await yard.delete(`${path}/repositories/a`)).status).toBe(404);
    expect((await inspect(':v3')).code).not.toBe(0);
    expect((await yard.get(`${path}/repositories`)).body).toEqual({ count: 0, results: [] });
  });

  it('is deleted with its content and releases its quota', async () => {
    const usage = async () =>
      (await yard.sql<{ kind: string; usage: number }>(`select kind, usage::int from quota_counters order by kind`))
        .filter(({ kind }) => kind.startsWith('registry'))
        .map((row) => row.usage);
    const before = await usage();
    const { path, url } = await make('gone', [{ name: 'gone', duration: 1, secret: 'pw' }]);
    await pushed(image.source, `${url}/a:v1`, 'gone:pw');
    expect((await yard.delete(path)).status).toBe(204);
    expect(
      existsSync(join(yard.dataDir, 'registries/storage/docker/registry/v2/repositories', url.split('/')[1]!)),
    ).toBe(false);
    expect(await usage()).toEqual(before);
    expect((await yard.get(path)).status).toBe(404);
    expect((await push(image.source, `${url}/a:v1`, 'gone:pw').ended).output).toContain('no registry has a user');
  });

  it('refuses pushes with a message when it is full, and still serves pulls and deletions', async () => {
    const { path, url } = await make('full');
    const id = Number(path.split('/').at(-1));
    await pushed(image.source, `${url}/a:v1`);
    await yard.sql(
      `with blob as (insert into registry_blobs values ($1, 'sha256:test', $2, 'infinity'))
       update registries set storage_used = storage_used + $2 where id = $1`,
      [id, 5.5 * 1024 ** 3],
    );
    const { code, output } = await push(image.source, `${url}/a:v2`, 'ci:pw').ended;
    expect(code).not.toBe(0);
    expect(output).toContain('registry full is full: it holds 5.50 GiB, and its storage_limit is 5 GiB');
    expect((await pull(`${url}/a:v1`, join(yard.folder, 'full'), 'ci:pw').ended).code).toBe(0);
    expect((await deleteImage(`${url}/a:v1`, 'ci:pw').ended).code).toBe(0);
    expect((await yard.patch(`${path}/resize`, { storage_limit: 6 })).status).toBe(200);
    await pushed(image.source, `${url}/a:v2`);
  });

  it('enforces the permissions of its users', async () => {
    const users = [
      { name: 'rw', duration: 1, secret: 'pw' },
      { name: 'ro', duration: 1, secret: 'pw', read_only: true },
      { name: 'old', duration: 0, secret: 'pw' },
    ];
    const one = await make('one', users);
    const two = await make('two', [{ name: 'other', duration: 1, secret: 'pw' }]);
    await pushed(image.source, `${one.url}/a:v1`, 'rw:pw');
    expect((await push(image.source, `${one.url}/a:v2`, 'ro:pw').ended).output).toContain('denied');
    expect((await pull(`${one.url}/a:v1`, join(yard.folder, 'ro'), 'ro:pw').ended).code).toBe(0);
    expect((await deleteImage(`${one.url}/a:v1`, 'ro:pw').ended).code).not.toBe(0);
    expect((await pull(`${one.url}/a:v1`, join(yard.folder, 'old'), 'old:pw').ended).output).toContain(
      'old expired at',
    );
    expect((await pull(`${one.url}/a:v1`, join(yard.folder, 'other'), 'other:pw').ended).output).toContain('denied');
    expect((await push(image.source, `${two.url}/a:v1`, 'rw:pw').ended).output).toContain('denied');
  });

  it('mounts no blob of another registry', async () => {
    const one = await make('mone', [{ name: 'mine', duration: 1, secret: 'pw' }]);
    const two = await make('mtwo', [{ name: 'theirs', duration: 1, secret: 'pw' }]);
    await pushed(image.source, `${two.url}/a:v1`, 'theirs:pw');
    const [mine, theirs] = [one, two].map(({ url }) => `${url.split('/')[1]}/a`) as [string, string];
    const { body } = await tokenFor('mine:pw', `repository:${mine}:pull,push`, `repository:${theirs}:pull`);
    const payload = JSON.parse(Buffer.from(body['token']!.split('.')[1]!, 'base64url').toString());
    expect(payload.access).toMatchObject([{ type: 'repository', name: mine, actions: ['pull', 'push'] }]);
    const digest = image.layers[0]!;
    const ask = (method: string, path: string) =>
      fetch(`http://127.0.0.1:${port}/v2/${path}`, { method, headers: { authorization: `Bearer ${body['token']}` } });
    expect((await ask('POST', `${mine}/blobs/uploads/?mount=${digest}&from=${theirs}`)).status).toBe(401);
    expect((await ask('HEAD', `${theirs}/blobs/${digest}`)).status).toBe(401);
    // The bytes are on the host, but not for this registry.
    expect((await ask('HEAD', `${mine}/blobs/${digest}`)).status).toBe(404);
  });

  it('recovers when distribution is killed during a push', async () => {
    const { path, url } = await make('kill');
    const big = makeImage(join(yard.folder, 'big'), [64 * mib, 8 * mib]);
    for (const received of [0, 8 * mib, 40 * mib]) {
      const pushing = await pushUntil(received, big.source, `${url}/a:v${received}`);
      const pid = pidOfHost();
      process.kill(pid, 'SIGKILL');
      await pushing.ended;
      await until(() => pidOfHost() !== pid && liveProcess(pidOfHost()), 20, 'a new process');
      await until(
        () =>
          fetch(`http://127.0.0.1:${port}/v2/`)
            .then((each) => each.status === 401)
            .catch(() => false),
        20,
        'up',
      );
    }
    await pushed(big.source, `${url}/a:last`);
    expect((await pull(`${url}/a:last`, join(yard.folder, 'last'), 'ci:pw').ended).code).toBe(0);
    await until(async () => (await artifacts(path, 'a')).results?.[0]?.tags.length >= 1, 15, 'a tag');
    // Incomplete uploads are not counted, and stored blobs are counted once.
    await until(async () => (await stored(path)) === big.size, 30, 'the size of the stored blobs');
  });

  it('never answers 500 for a link or a manifest that was cut off in the middle', async () => {
    const { url } = await make('cut');
    // Of its own: the trash may contain the manifest of a deleted image, and a pass of garbage collection would restore it.
    const whole = makeImage(join(yard.folder, 'whole'), [mib]);
    await pushed(whole.source, `${url}/a:v1`);
    const name = url.slice(url.indexOf('/') + 1);
    const folder = join(yard.dataDir, 'registries/storage/docker/registry/v2/repositories', name, 'a');
    const links = readdirSync(folder, { recursive: true })
      .map((path) => join(folder, String(path)))
      .filter((path) => path.endsWith('/link'));
    expect(links.length).toBeGreaterThanOrEqual(5);
    const cut = (file: string, bytes: number) => {
      truncateSync(file, bytes);
      // Older than a write that is in progress.
      utimesSync(file, new Date(0), new Date(0));
    };
    for (const link of links) cut(link, link.includes('_layers') ? 0 : 30);
    const target = join(yard.folder, 'cut');
    // Digests may contain these digits.
    expect((await pull(`${url}/a:v1`, target, 'ci:pw').ended).output).not.toMatch(/\b500\b/);
    expect((await pull(`${url}/a:v1`, target, 'ci:pw').ended).code).toBe(0);

    const digest = readFileSync(links.find((link) => link.includes('tags/v1/current'))!, 'utf8');
    cut(blobFile(digest), 10);
    const { code, output } = await pull(`${url}/a:v1`, target, 'ci:pw').ended;
    expect(code).not.toBe(0);
    expect(output).toMatch(/manifest unknown/);
    await pushed(whole.source, `${url}/a:v1`);
    expect((await pull(`${url}/a:v1`, target, 'ci:pw').ended).code).toBe(0);
  });

  it('keeps serving while the server is dead, and the next server adopts it', async () => {
    const { path, url } = await make('adopt');
    const big = makeImage(join(yard.folder, 'adopted'), [48 * mib]);
    const pushing = await pushUntil(0, big.source, `${url}/a:v1`);
    const pid = pidOfHost();
    await server.kill();
    server = await yard.start(['start']);
    await pushing.ended;
    expect(pidOfHost()).toBe(pid);
    await pushed(big.source, `${url}/a:v2`);
    await until(
      async () => (await artifacts(path, 'a')).results?.[0]?.tags.some((tag: { name: string }) => tag.name === 'v2'),
      20,
      'the tag',
    );
  });

  it('completes a deletion after the server was killed during it', async () => {
    const { path, url } = await make('crash');
    await pushed(image.source, `${url}/a:v1`);
    await until(async () => (await artifacts(path, 'a')).count === 1, 10, 'the artifact');
    const deletion = yard.delete(path).catch(() => null);
    const isRequested = `select from registries where name = 'crash' and deleted_at is null`;
    while ((await yard.sql(isRequested)).length > 0);
    await server.kill();
    await deletion;
    server = await yard.start(['start']);
    const gone = async () => (await yard.get(path)).status === 404;
    if (!(await gone())) expect((await yard.delete(path)).status).toBe(204);
    await until(
      async () => (await yard.sql('select 1 from registries where name = $1', ['crash'])).length === 0,
      30,
      'gone',
    );
  });

  it('sends clients to another server when one is gone', async () => {
    await server.stop();
    const realm = async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/v2/`).catch(() => null);
      return /realm="(http:\/\/[^/]+)/.exec(answer?.headers.get('www-authenticate') ?? '')?.[1];
    };
    const first = await yard.start(['serve']);
    const worker = await yard.start(['worker', '--region', '1']);
    await until(async () => (await realm()) === yard.url, 20, 'the first server');
    const otherPort = await freePort();
    const second = await yard.start(['serve'], { CLOUDYARD_PORT: String(otherPort) });
    const announced = async () => (await yard.sql('select api_seen_at::text as at from registry_authority'))[0]!['at'];
    // Both announce themselves at the same interval: by the second time of the first server, the other one had its turn.
    for (let turn = 0; turn < 2; turn += 1) {
      const before = await announced();
      await until(async () => (await announced()) !== before, 60, 'an announcement');
    }
    expect(await realm()).toBe(yard.url);
    await first.kill();
    await until(async () => (await realm()) === `http://127.0.0.1:${otherPort}`, 40, 'the second server');
    await worker.stop();
    await second.stop();
    server = await yard.start(['start']);
  });

  it('sends clients to the port that the server uses', async () => {
    await server.stop();
    const occupant = createServer().listen(yard.port, '127.0.0.1');
    try {
      const other = await yard.start(['start'], { CLOUDYARD_PORT: '' });
      const url = /API +(\S+)/.exec(other.stdout())![1]!;
      expect(url).not.toBe(yard.url);
      const challenge = (await fetch(`http://127.0.0.1:${port}/v2/`)).headers.get('www-authenticate');
      expect(challenge).toContain(`realm="${url}/`);
      await other.stop();
    } finally {
      occupant.close();
    }
  });
});
