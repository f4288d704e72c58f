/** Certificates from a real ACME server, for two servers of one database. */
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { freePort } from '../../../test/free-port.ts';
import { startHttpsRedirect } from '../../http/https-redirect.ts';
import { cloneDatabase } from '../../../test/harness.ts';
import { requires } from '../../../test/requires.ts';
import { connect, type Db } from '../db.ts';
import { createKeyring } from '../encryption.ts';
import { silentLogger } from '../log.ts';
import { statusOf } from '../tls/certificate.ts';
import { type Acme, type AcmeOptions, openAcme } from './acme.ts';
import type { AcmeSettings } from './settings.ts';
import { decryptState, findRow, reencryptAcme } from './store.ts';
import { openAcmeServer, type TestAcmeServer } from '../../../test/acme-server.ts';

const oldKey = { id: 'old', key: randomBytes(32) };
const keyring = createKeyring([oldKey]);
vi.setConfig({ testTimeout: 150_000 });

const timeout = { timeout: 50_000, interval: 20 };

describe.skipIf(!requires('lego', 'pebble', 'openssl'))('certificates by ACME', () => {
  let authority: TestAcmeServer;
  let db: Db;
  let drop: () => Promise<void>;
  let challengePort: number;
  const opened: Acme[] = [];
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-acme-test-'));

  beforeAll(async () => {
    challengePort = await freePort();
    // Renewed after two thirds of its life.
    authority = await openAcmeServer({ httpPort: challengePort, validSeconds: 18 });
    const database = await cloneDatabase(inject('postgres'));
    drop = database.drop;
    db = connect({ ...database.connection, poolSize: 5, log: silentLogger });
  });
  afterAll(async () => {
    for (const acme of opened) await acme.stop();
    await authority?.cleanUp();
    await db?.$client.end();
    await drop?.();
    rmSync(folder, { recursive: true });
  });

  const settingsOf = (own: Partial<AcmeSettings> = {}): AcmeSettings => ({
    ...{ domains: ['cloud.example.com'], email: 'operator@example.com', server: authority.url, challenge: 'http-01' },
    ...{ dnsHook: null, dnsResolvers: [], caFile: authority.caFile, ...own },
  });
  const open = async (
    name: string,
    settings: AcmeSettings,
    renewal: Pick<AcmeOptions, 'renews' | 'challengesAnswered'> = { renews: true },
  ) => {
    const dataDir = join(folder, name);
    const paces = { pollSeconds: 0.1, retrySeconds: 0.2 };
    const acme = await openAcme({ settings, db, keyring, dataDir, log: silentLogger, ...renewal, ...paces });
    opened.push(acme);
    return { acme, dataDir };
  };
  const row = async () => (await findRow(db))!;

  it('are requested only when challenges are answered', async () => {
    const { promise: challengesAnswered, resolve } = Promise.withResolvers<void>();
    const { acme } = await open('early', settingsOf(), { renews: true, challengesAnswered });
    // Ten polls.
    await sleep(1000);
    expect(await findRow(db)).toBeNull();
    resolve();
    await vi.waitUntil(async () => (await findRow(db)) !== null, timeout);
    await acme.stop();
  });

  it('are requested again until the ACME server is there, by one server, and served by all', async () => {
    const first = await open('first', settingsOf());
    await vi.waitUntil(async () => ((await findRow(db))?.failures ?? 0) > 1, timeout);
    expect(statusOf(first.acme, new Date())).toMatchObject({ healthy: false, detail: expect.stringContaining('dial') });

    const second = await open('second', settingsOf());
    const follower = await open('follower', settingsOf(), { renews: false });
    // Every challenge reaches a server that did not request it.
    const redirect = await startHttpsRedirect({
      ...{ host: '127.0.0.1', port: challengePort, publicUrl: undefined, httpsPort: 443, log: silentLogger },
      findChallenge: follower.acme.findChallenge,
    });
    await authority.start();
    const all = [first.acme, second.acme, follower.acme];
    await vi.waitUntil(() => all.every((acme) => acme.current() !== null && acme.problem() === null), timeout);
    const [one, ...others] = all.map((acme) => acme.current()!);
    expect(one).toMatchObject({ names: ['cloud.example.com'] });
    expect(others).toEqual([one, one]);
    expect(one!.certificate.match(/BEGIN CERTIFICATE/g)!.length).toBeGreaterThan(1);
    const { version, state } = await row();
    expect(version).toBe(1);
    // A server with other domains does not replace it at once.
    expect((await row()).paused).toBe(true);
    expect(state!.toString('latin1')).not.toContain('PRIVATE KEY');
    expect(existsSync(join(first.dataDir, 'acme'))).toBe(false);
    expect(existsSync(join(second.dataDir, 'acme'))).toBe(false);

    const account = decryptState(keyring, state!).account;
    const changes: number[] = [];
    follower.acme.onChange(({ expiresAt }) => changes.push(expiresAt.getTime()));
    await vi.waitUntil(() => changes.length > 0, timeout);
    expect(changes[0]).toBeGreaterThan(one!.expiresAt.getTime());
    expect(decryptState(keyring, (await row()).state!).account).toEqual(account);

    await authority.stop();
    const before = await row();
    await vi.waitUntil(async () => (await row()).failures > 0, timeout);
    expect(follower.acme.current()).not.toBeNull();
    expect((await row()).version).toBe(before.version);
    await redirect.stop();
    await vi.waitUntil(() => statusOf(follower.acme, new Date()).healthy === false, timeout);
    await Promise.all(all.map((acme) => acme.stop()));
  });

  it('are encrypted with a new key', async () => {
    const rotated = createKeyring([{ id: 'new', key: randomBytes(32) }, oldKey]);
    const state = decryptState(keyring, (await row()).state!);
    expect(await reencryptAcme(db, rotated)).toBe(1);
    expect(decryptState(rotated, (await row()).state!)).toEqual(state);
    expect(() => decryptState(keyring, Buffer.from([]))).toThrow('not a ciphertext');
  });

  it('that cannot be decrypted do not stop a server, which gets a new one', async () => {
    const stranger = createKeyring([{ id: 'stranger', key: randomBytes(32) }]);
    const before = await row();
    const log = { ...silentLogger, error: vi.fn<typeof silentLogger.error>() };
    const options = { db, dataDir: join(folder, 'stranger'), log, pollSeconds: 0.1, retrySeconds: 0.2 };
    const acme = await openAcme({ ...options, settings: settingsOf(), keyring: stranger, renews: true });
    opened.push(acme);
    expect(acme.problem()).toContain('the stored certificate cannot be used: ');
    expect(log.error).toHaveBeenCalledWith(expect.anything(), expect.stringContaining('a new one will be requested'));
    const redirect = await startHttpsRedirect({
      ...{ host: '127.0.0.1', port: challengePort, publicUrl: undefined, httpsPort: 443, log: silentLogger },
      findChallenge: acme.findChallenge,
    });
    await authority.start();
    await vi.waitUntil(() => acme.current() !== null, timeout);
    expect(acme.problem()).toBeNull();
    expect((await row()).version).toBe(before.version + 1);
    await acme.stop();
    await redirect.stop();
    await authority.stop();
    await db.$client.query('delete from acme_certificates');
  });

  it('of another ACME server are replaced', async () => {
    await authority.start();
    let { acme } = await open('tests', settingsOf());
    const redirect = await startHttpsRedirect({
      ...{ host: '127.0.0.1', port: challengePort, publicUrl: undefined, httpsPort: 443, log: silentLogger },
      findChallenge: (token) => acme.findChallenge(token),
    });
    await vi.waitUntil(() => acme.current() !== null, timeout);
    await acme.stop();
    const before = acme.current()!;
    await db.$client.query('update acme_certificates set next_attempt_at = null');
    ({ acme } = await open('production', settingsOf({ server: authority.url.replace('localhost', '127.0.0.1') })));
    expect(acme.current()).toEqual(before);
    // Long before only a third of its life remains.
    await vi.waitUntil(() => acme.current()!.key !== before.key, { timeout: 8_000, interval: 20 });
    await acme.stop();
    await redirect.stop();
    await authority.stop();
    await db.$client.query('delete from acme_certificates');
  });

  it('are issued for wildcards with a hook that sets DNS records', async () => {
    const hook = join(folder, 'hook');
    const log = join(folder, 'hook.log');
    writeFileSync(
      hook,
      `#!/bin/sh
echo "$1 $2" >> ${log}
[ "$1" = present ] || exit 0
exec curl -sf -d "{\\"host\\": \\"$2\\", \\"value\\": \\"$3\\"}" ${authority.dnsApi}/set-txt
`,
    );
    chmodSync(hook, 0o755);
    await authority.start();
    const own = { domains: ['*.example.com'], challenge: 'dns-01' as const, dnsHook: hook };
    const { acme } = await open('dns', settingsOf({ ...own, dnsResolvers: [authority.dns] }));
    await vi.waitUntil(() => acme.current() !== null, timeout);
    expect(acme.current()!.names).toEqual(['*.example.com']);
    await acme.stop();
    expect(readFileSync(log, 'utf8').split('\n').slice(0, 2)).toEqual([
      'present _acme-challenge.example.com.',
      'cleanup _acme-challenge.example.com.',
    ]);
  });

  it('name a missing program and a refusal', async () => {
    await db.$client.query('delete from acme_certificates');
    const { acme } = await open('refused', settingsOf({ domains: ['refused.example.com'] }));
    // No server answers the challenge.
    await vi.waitUntil(() => /acme: error: .*urn:ietf:params:acme:error/.test(acme.problem() ?? ''), timeout);
    await acme.stop();
    vi.stubEnv('PATH', folder);
    const limit = 'acme: error: 429 :: POST :: https://acme.example/order :: too many certificates';
    writeFileSync(
      join(folder, 'lego'),
      `#!/bin/sh\nprintf 'Could not obtain certificates:\\n\\t${limit}\\n' >&2; exit 1\n`,
    );
    chmodSync(join(folder, 'lego'), 0o755);
    const { acme: limited } = await open('limited', settingsOf());
    await vi.waitUntil(() => limited.problem() === limit, timeout);
    await limited.stop();
    rmSync(join(folder, 'lego'));
    const { acme: without } = await open('without', settingsOf());
    await vi.waitUntil(() => without.problem() === 'the program lego is not installed (package lego)', timeout);
    await without.stop();
    vi.unstubAllEnvs();
  });
});
