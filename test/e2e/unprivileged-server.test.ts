/** A server without root beside a root worker, as docs/guides/production.md recommends: the key file belongs to one of them. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { root } from '../../src/platform/program-files.ts';
import { httpClient } from '../http-client.ts';
import { bootstrapToken, openYard, type Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { serverScript } from '../server-program.ts';
import { startSystemPostgres } from '../system-postgres.ts';
import { until } from '../until.ts';

vi.setConfig({ testTimeout: 180_000 });

const user = 65534;
const secret = {
  ...{ name: 'first', secret_type: 'opaque', payload: 'AAAA' },
  ...{ payload_content_type: 'text/plain', payload_content_encoding: 'base64' },
};
const webhook = { url: 'https://hooks.example.com/' };
const parts = ['root', 'postgresql', 'util-linux'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a server without root beside a root worker', () => {
  let yard: Yard;
  let postgres: Awaited<ReturnType<typeof startSystemPostgres>> | undefined;
  const settings = () => ({ DATABASE_URL: postgres!.url, CLOUDYARD_KEY_FILE: keyFile() });
  const keyFile = () => join(yard.folder, 'keys', 'secret.keys');
  const readiness = () => yard.get('/readyz').catch(() => ({ status: 0, body: {} as any }));

  afterEach(async () => {
    await postgres?.stop();
    yard?.cleanUp();
  });

  async function arrange(): Promise<void> {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', DATABASE_URL: 'unused' });
    postgres = await startSystemPostgres(yard.folder);
    mkdirSync(join(yard.folder, 'keys'));
    chownSync(join(yard.folder, 'keys'), user, user);
  }

  /** With the checkout where the user can read it. `owner`: of the data directory. */
  function startServer(command = 'serve', owner = user): { output(): string; ended: Promise<number | null> } {
    const [checkout, dataDir] = [join(yard.folder, 'checkout'), join(yard.folder, 'api')];
    for (const folder of [checkout, dataDir]) mkdirSync(folder, { recursive: true });
    chownSync(dataDir, owner, owner);
    const preload = serverScript.endsWith('.ts') ? '--import "$2/bin/module-resolution.mjs"' : '';
    const script = `mount --bind "$1" "$2" && exec setpriv --reuid ${user} --regid ${user} --clear-groups \\
      "$2/node_modules/node/bin/node" ${preload} "$2/${relative(root, serverScript)}" ${command}`;
    const env = { PATH: process.env['PATH']!, ...yard.env, ...settings(), CLOUDYARD_DATA_DIR: dataDir };
    const child = spawn('unshare', ['--mount', 'sh', '-c', script, 'sh', root, checkout], { env });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (output += String(text)));
    const ended = once(child, 'close').then(([code]) => code as number | null);
    return { output: () => output, ended };
  }

  const create = () =>
    Promise.all([yard.post('/cloud/v1/secrets/1/1', secret), yard.post('/cloudyard/v1/clients/1/webhooks', webhook)]);
  const statuses = async () => (await create()).map(({ status }) => status);
  const isReady = async () => (await readiness()).status === 200;
  /** Runs the command that a message names. */
  const fix = (message: string) => {
    expect(message).toContain(`the key file ${keyFile()} cannot be read (EACCES)`);
    execFileSync('sh', ['-c', /as root, run: (chown .*?secret\.keys)/.exec(message)![1]!]);
  };
  /** A server of root on another port creates the key file with the first secret. */
  const createKeyAsRoot = async () => {
    const port = await freePort();
    const server = await yard.start(['serve'], { ...settings(), CLOUDYARD_PORT: String(port) });
    const api = httpClient(`http://127.0.0.1:${port}`, bootstrapToken);
    expect((await api.post('/cloud/v1/secrets/1/1', secret)).status).toBe(200);
    await server.stop();
    expect([statSync(keyFile()).uid, statSync(keyFile()).mode & 0o777]).toEqual([0, 0o600]);
  };

  it('does not start with the key file of root, and names the command that fixes it', async () => {
    await arrange();
    await createKeyAsRoot();
    await yard.start(['worker', '--region', '1'], settings());
    const refused = startServer();
    expect(await refused.ended).not.toBe(0);
    fix(refused.output());
    startServer();
    await until(isReady, 60, 'the server to be ready');
    expect(await statuses()).toEqual([200, 201]);
  });

  it('reports in doctor that it cannot write to its data directory', async () => {
    await arrange();
    const doctor = startServer('doctor', 0);
    expect(await doctor.ended).toBe(1);
    expect(doctor.output()).toContain(`this user cannot write to ${join(yard.folder, 'api')} (EACCES)`);
  });

  it('is not ready when its key file becomes that of root, and names the command', async () => {
    await arrange();
    startServer();
    await until(isReady, 60, 'the server to be ready');
    expect(await statuses()).toEqual([200, 201]);
    chownSync(keyFile(), 0, 0);
    await until(async () => (await readiness()).status === 503, 30, 'the server to be unready');
    expect(await statuses()).toEqual([503, 503]);
    fix((await readiness()).body.message);
    await until(isReady, 30, 'the server to be ready again');
    expect(await statuses()).toEqual([200, 201]);
  });

  it('shares the key file that it has created with the worker', async () => {
    await arrange();
    startServer();
    await until(isReady, 60, 'the server to be ready');
    expect(await statuses()).toEqual([200, 201]);
    const owner = () => [statSync(keyFile()).uid, statSync(keyFile()).mode & 0o777];
    expect(owner()).toEqual([user, 0o600]);
    await yard.start(['worker', '--region', '1'], settings());
    expect(owner()).toEqual([user, 0o600]);
  });
});
