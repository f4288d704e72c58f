/** Pull secrets with a real registry and a real client, and rotation of their encryption key. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { login, password, startRegistry } from '../../src/drivers/registry-login/test-registry.ts';
import { makeImage, push, startSkopeo } from '../images.ts';
import { openYard, type Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';

const timeout = { timeout: 300_000 };
const settings = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_VERIFY_NETWORKS: '127.0.0.0/8' };
const secrets = '/cloud/v1/caas/secrets/1/1';
const ours = '/cloudyard/v1/caas/secrets/1/1';

let yard: Yard;
let stopRegistry: (() => Promise<void>) | undefined;
afterEach(async () => {
  await stopRegistry?.();
  stopRegistry = undefined;
  yard?.cleanUp();
});

const runs = requires('docker-registry', 'skopeo');
describe.skipIf(!runs)(skipReason('docker-registry', 'skopeo') ?? 'a pull secret', () => {
  it('pulls a private image, and its verification accepts the right password only', timeout, async () => {
    yard = await openYard(settings);
    const cloudyard = await yard.start(['serve']);
    const registry = await startRegistry(join(yard.folder, 'registry'));
    stopRegistry = registry.stop;
    const image = `${registry.authority}/private/image:latest`;
    const { source } = makeImage(join(yard.folder, 'image'), [1000]);
    expect((await push(source, image, `${login}:${password}`).ended).code).toBe(0);

    const given = { name: 'private', registry: `http://${registry.authority}/v2/`, login, password: 'wrong' };
    expect((await yard.post(secrets, given)).status).toBe(200);
    const verify = async () => (await yard.post(`${ours}/private/verify`)).body;
    expect(await verify()).toMatchObject({ verified: false, outcome: 'refused' });
    const pull = async (name: string) => {
      const file = join(yard.folder, `${name}.json`);
      writeFileSync(file, JSON.stringify((await yard.get(`${ours}/private/dockerconfigjson`)).body));
      const to = join(yard.folder, name);
      mkdirSync(to);
      const args = ['copy', '--src-tls-verify=false', '--authfile', file, `docker://${image}`, `dir:${to}`];
      return startSkopeo(args).ended;
    };
    expect(await pull('refused')).toMatchObject({
      code: 1,
      output: expect.stringContaining('authentication required'),
    });
    expect((await yard.patch(`${secrets}/private`, { password })).status).toBe(200);
    expect(await verify()).toEqual({
      verified: true,
      outcome: 'accepted',
      message: `${registry.authority} accepts the login and password`,
    });
    expect((await pull('pulled')).code).toBe(0);
    expect(statSync(join(yard.folder, 'pulled', 'manifest.json')).size).toBeGreaterThan(100);
    expect((await cloudyard.stop()).code).toBe(0);
    expect(cloudyard.stdout() + cloudyard.stderr()).not.toContain(password);
  });
});

describe('a rotated key', () => {
  it('encrypts everything, and the old key can be removed', timeout, async () => {
    yard = await openYard(settings);
    const cloudyard = await yard.start(['serve']);
    const secret = { name: 'a', registry: 'registry.test', login: 'me', password: 'pass' };
    await yard.post(secrets, secret);
    const once = { headers: { 'idempotency-key': 'once' } };
    const key = { name: 'a-key', containers: [] };
    const created = await yard.post('/cloud/v1/caas/keys/1/1', key, once);

    const file = join(yard.dataDir, 'secret.keys');
    const ids = () =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.split(' ')[0]);
    const [first] = ids();
    writeFileSync(file, `# of the first start\n${readFileSync(file, 'utf8')}`);
    const rotated = await yard.run(['secrets', 'rotate-key']);
    expect(rotated).toMatchObject({ code: 0, stderr: '' });
    const [second] = ids();
    // The pull secret, the stored response, and the signing key of the registries' token server.
    expect(rotated.stdout).toContain(`${second} is the current key; 3 re-encrypted`);
    expect(rotated.stdout).toContain(`no longer needed once every host has the file: ${first}`);
    expect(ids()).toEqual([second, '#', first]);
    expect(statSync(file).mode & 0o777).toBe(0o600);

    // The server is not restarted.
    writeFileSync(file, `${readFileSync(file, 'utf8').split('\n')[0]}\n`);
    const shown = async () => (await yard.get(`${ours}/a/dockerconfigjson`)).body.auths['registry.test'].password;
    expect(await shown()).toBe('pass');
    const repeated = await yard.post('/cloud/v1/caas/keys/1/1', key, once);
    expect(repeated).toMatchObject({ status: 200, body: created.body });

    const prepared = await yard.run(['secrets', 'rotate-key', '--prepare']);
    const [, third] = ids();
    expect(prepared.stdout).toContain(`${third} is in ${file}; copy the file to all hosts, then run: `);
    expect(ids()).toEqual([second, third]);
    expect((await yard.run(['secrets', 'rotate-key', '--use', third!])).stdout).toContain('3 re-encrypted');
    expect(ids()).toEqual([third, second]);
    expect(await shown()).toBe('pass');
    for (const args of [
      [],
      ['rotate'],
      ['rotate-key', '--prepare', '--use', 'x'],
      ['rotate-key', '--prepare', '--lost'],
      ['rotate-key', '--what'],
    ]) {
      expect((await yard.run(['secrets', ...args])).code).toBe(2);
    }
    const unknown = await yard.run(['secrets', 'rotate-key', '--use', 'nothing']);
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining(`key nothing not found in ${file}`) });

    const { results } = (await yard.get('/cloudyard/v1/audit?operation=rotateKey')).body;
    expect(results).toHaveLength(2);
    await cloudyard.stop();
  });
});

it('the key file of another installation is refused at a start', timeout, async () => {
  yard = await openYard(settings);
  expect((await (await yard.start(['serve'])).stop()).code).toBe(0);
  const file = join(yard.dataDir, 'secret.keys');
  const own = readFileSync(file, 'utf8');
  const other = `other ${randomBytes(32).toString('base64')}\n`;
  writeFileSync(file, other);
  for (const args of [['serve'], ['worker', '--region', '1']]) {
    expect(await yard.run(args)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${file} is not the key file of this database`),
    });
  }
  writeFileSync(file, other + own);
  expect((await (await yard.start(['serve'])).stop()).code).toBe(0);
});

it('an agent refuses the key file of another installation', timeout, async () => {
  yard = await openYard(settings);
  const server = await yard.start(['serve']);
  const env = { DATABASE_URL: yard.databaseUrl(), CLOUDYARD_HOST_NAME: 'h1', CLOUDYARD_HOST_ADDRESS: '127.0.0.1' };
  const run = (keyFile: string) =>
    yard.run(['host', '--region', '1'], {
      ...env,
      CLOUDYARD_DATA_DIR: join(yard.folder, 'agent'),
      CLOUDYARD_KEY_FILE: keyFile,
    });
  const other = join(yard.folder, 'other.keys');
  writeFileSync(other, `other ${randomBytes(32).toString('base64')}\n`);
  expect(await run(other)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`${other} is not the key file of this database`),
  });
  expect(await run(join(yard.dataDir, 'secret.keys'))).toMatchObject({
    stderr: expect.stringContaining('region 1 has no "hosts" in the regions file'),
  });
  await server.stop();
});

describe('a key file that is missing', () => {
  it('is not created by a rotation; if it is lost, secrets are renewed with another one', timeout, async () => {
    yard = await openYard(settings);
    const first = await yard.start(['serve']);
    const secret = { name: 'a', registry: 'registry.test', login: 'me', password: 'pass' };
    expect((await yard.post(secrets, secret)).status).toBe(200);
    await first.stop();
    const file = join(yard.dataDir, 'secret.keys');
    const lost = ['secrets', 'rotate-key', '--lost'];
    expect((await yard.run(lost)).stderr).toContain(`no key is lost: ${file} decrypts`);
    rmSync(file);
    for (const args of [[], ['--prepare'], ['--use', 'x']]) {
      const refused = await yard.run(['secrets', 'rotate-key', ...args]);
      expect(refused).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`key file ${file} not found; restore`),
      });
      expect(existsSync(file)).toBe(false);
    }
    expect(await yard.run(lost)).toMatchObject({ code: 0, stdout: expect.stringContaining('is the current key') });

    const second = await yard.start(['serve']);
    const shown = () => yard.get(`${ours}/a/dockerconfigjson`);
    expect((await shown()).status).toBe(500);
    expect((await yard.patch(`${secrets}/a`, { password: 'new' })).status).toBe(200);
    expect((await shown()).body.auths['registry.test'].password).toBe('new');
    expect(await yard.run(['secrets', 'rotate-key'])).toMatchObject({ code: 0, stderr: '' });
    await second.stop();
  });
});
