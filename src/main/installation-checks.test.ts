import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from 'vitest';
import { cloneDatabase } from '../../test/harness.ts';
import { openKeyFile } from '../platform/key-file.ts';
import { aCertificate } from '../resources/secrets/test-certificates.ts';
import { checkInstallation, workerDirectories } from './installation-checks.ts';
import { checkoutPlaces } from '../platform/program-files.ts';
import { readSettings } from './settings.ts';

// On a disk: a filesystem in memory is nearly empty, and a check needs one with less than 90 % free.
const folder = mkdtempSync('/var/tmp/cloudyard-doctor-');
const keyLine = `1 ${Buffer.alloc(32).toString('base64')}\n`;
let database: Awaited<ReturnType<typeof cloneDatabase>>;
let url: string;

beforeAll(async () => {
  database = await cloneDatabase(inject('postgres'));
  const { connectionString, user, host, port, database: name } = database.connection;
  url = connectionString ?? `postgres://${user}@${encodeURIComponent(host!)}:${port}/${name}`;
  writeFileSync(join(folder, 'secret.keys'), keyLine, { mode: 0o600 });
});
afterAll(async () => {
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function query(text: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(text).finally(() => client.end());
}

/** The names of the failed checks, and the output of all. */
async function failed(env: Record<string, string> = {}, clock = 'yes'): Promise<Record<string, string | undefined>> {
  const given = { CLOUDYARD_DATA_DIR: folder, DATABASE_URL: url, CLOUDYARD_DISK_RESERVE: '0', ...env };
  const findings = await checkInstallation(
    readSettings(given, checkoutPlaces(process.cwd()), false),
    async () => clock,
  );
  // PostgreSQL of the tests is not durable.
  const relevant = findings.filter(({ name, ok }) => !ok && name !== 'settings of PostgreSQL');
  return Object.fromEntries(relevant.map(({ name, detail, remedy }) => [name, `${detail} | ${remedy}`]));
}

it('an installation without problems passes', async () => {
  expect(await failed()).toEqual({});
});

it('a lock that the checks wait for is reported with its holder', async () => {
  const holder = new pg.Client({ connectionString: url, application_name: 'psql' });
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query('begin; lock table secrets');
  const { rows } = await holder.query('select pg_backend_pid() as pid');
  expect(await failed()).toEqual({
    database: expect.stringMatching(
      new RegExp(`waited 3 s for a lock of process ${rows[0].pid} \\(psql\\) \\| .*where pid = ${rows[0].pid}'`),
    ),
  });
}, 20_000);

it('a data directory that the first start has yet to create is not a problem', async () => {
  const dataDir = join(folder, 'not', 'yet');
  expect(await failed({ CLOUDYARD_DATA_DIR: dataDir })).toEqual({});
});

it('a data directory below a file is a problem', async () => {
  const file = join(folder, 'a-file');
  writeFileSync(file, '');
  onTestFinished(() => rmSync(file));
  const found = await failed({ CLOUDYARD_DATA_DIR: join(file, 'data') });
  expect(found).toMatchObject({
    'data directory': expect.stringContaining(`${file} is not a directory | ls -ld ${file}`),
  });
});

it('the data directories of the workers are checked beside that of the server, as in the Debian package', async () => {
  // Another filesystem than the other folder.
  const memory = mkdtempSync('/dev/shm/cloudyard-doctor-');
  onTestFinished(() => rmSync(memory, { recursive: true }));
  const [api, worker, link] = [join(memory, 'api'), join(folder, 'worker-2'), join(memory, 'worker-10')];
  for (const each of [api, worker, join(memory, 'worker-9'), join(memory, 'worker-old')]) mkdirSync(each);
  symlinkSync(worker, link);
  expect(workerDirectories(api)).toEqual([link, join(memory, 'worker-9')]);
  expect(workerDirectories(join(memory, 'worker-9'))).toEqual([link]);
  expect(workerDirectories(join(memory, 'absent', 'api'))).toEqual([]);
  const env = { CLOUDYARD_DATA_DIR: api, DATABASE_URL: url, CLOUDYARD_DISK_RESERVE: '90' };
  const settings = readSettings(env, checkoutPlaces(process.cwd()), false);
  const findings = await checkInstallation(settings, async () => 'yes', workerDirectories(api));
  expect(findings.filter(({ name }) => name.startsWith('disk space'))).toMatchObject([
    { name: 'disk space' },
    { name: 'disk space of worker-10', ok: false, remedy: expect.stringContaining(`du -xh --max-depth=2 ${link}`) },
  ]);
});

it('the configuration is checked, as the next start reads it', async () => {
  const [regions, book] = [join(folder, 'regions.yaml'), join(folder, 'prices.yaml')];
  const remedy = / \| .* doctor {4}# when you have corrected the file$/;
  writeFileSync(regions, 'regions: [{ id: 1, display_name: one, country: LU, price_book: prices.yaml }]');
  expect(await failed({ CLOUDYARD_REGIONS_FILE: regions })).toEqual({ configuration: expect.stringContaining(book) });
  writeFileSync(regions, 'regions: [{ id: one }]\n');
  const { configuration } = await failed({ CLOUDYARD_REGIONS_FILE: regions });
  expect(configuration).toContain(`${regions}:1`);
  expect(configuration).toMatch(remedy);
});

it('the groups file is checked if people sign in by it', async () => {
  const groups = join(folder, 'groups.yaml');
  const oidc = {
    ...{ CLOUDYARD_OIDC_ISSUER: 'https://id.example.org', CLOUDYARD_PUBLIC_URL: 'https://cloud.example.org' },
    ...{ CLOUDYARD_OIDC_CLIENT_ID: 'a', CLOUDYARD_OIDC_CLIENT_SECRET: 'b', CLOUDYARD_OIDC_GROUPS_FILE: groups },
  };
  writeFileSync(groups, 'groups: [{ group: admins, client: 1, role: owner }]\n');
  expect(await failed(oidc)).toEqual({ configuration: expect.stringContaining(`${groups}:1`) });
  writeFileSync(groups, 'groups: [{ group: admins, client: 1, role: admin }]\n');
  expect(await failed(oidc)).toEqual({});
});

it('certificates in files are checked with their keys: of HTTPS and of registries', async () => {
  const [own, other] = [aCertificate(), aCertificate()];
  const [certificate, key] = [join(folder, 'tls.pem'), join(folder, 'tls.key')];
  const files = {
    ...{ CLOUDYARD_TLS_CERTIFICATE: certificate, CLOUDYARD_TLS_KEY: key },
    ...{ CLOUDYARD_REGISTRY_TLS_CERTIFICATE: certificate, CLOUDYARD_REGISTRY_TLS_KEY: key },
  };
  const both = (detail: string) => ({
    'certificate of HTTPS': expect.stringContaining(detail),
    'certificate of registries': expect.stringContaining(detail),
  });
  writeFileSync(certificate, own.pem);
  expect(await failed(files)).toEqual(both(`${key} cannot be read (ENOENT) | openssl x509 `));
  writeFileSync(key, other.keyPem);
  expect(await failed(files)).toEqual(both('the key does not belong to the certificate'));
  writeFileSync(key, own.keyPem);
  expect(await failed(files)).toEqual({});
});

it('a host of several that is away, or does not converge for minutes, is a problem', async () => {
  const add = (name: string, { lease = 'now() + interval $$10 s$$', started = 'now()', converged = true }) =>
    query(`insert into hosts (region_id, name, address, lease_until, converged, report, joined_at, started_at)
      values (1, '${name}', '10.0.0.1', ${lease}, ${converged}, '{}', now(), ${started})`);
  const longAgo = `now() - interval '1 hour'`;
  await add('serves', { started: longAgo });
  await add('starts', { converged: false });
  await add('away', { lease: longAgo });
  await add('stuck', { started: longAgo, converged: false });
  expect(await failed()).toEqual({
    'host away': expect.stringMatching(/^its lease ended 3600 s ago \| .*host forget 1 away/),
    'host stuck': expect.stringMatching(/^serves nothing: .* \| journalctl -u cloudyard-host@1 /),
  });
  await query(`update hosts set state = 'drained' where name = 'stuck'`);
  expect(Object.keys(await failed())).toEqual(['host away']);
  await query('delete from hosts');
});

it('the certificate from ACME is checked, and why there is none', async () => {
  const keyFile = join(folder, 'acme.keys');
  const acme = {
    ...{ CLOUDYARD_ACME_DOMAINS: 'cloud.example.org', CLOUDYARD_ACME_EMAIL: 'a@example.org' },
    ...{ CLOUDYARD_HTTP_REDIRECT_PORT: '80', CLOUDYARD_KEY_FILE: keyFile },
  };
  expect(await failed(acme)).toEqual({});
  await query(`insert into acme_certificates (id, error) values (1, 'the domain does not resolve')`);
  const name = 'certificate of HTTPS';
  for (const [host, local] of [
    ['0.0.0.0', '127.0.0.1'],
    ['10.0.0.1', '10.0.0.1'],
    ['fd00::1', '[fd00::1]'],
  ]) {
    const own = { ...acme, CLOUDYARD_HOST: host!, CLOUDYARD_PORT: '443' };
    expect((await failed(own))[name]).toContain(
      `none yet; the last request failed: the domain does not resolve | curl -sk https://${local}:443/healthz `,
    );
  }

  const day = 86_400_000;
  const issued = (notAfter: number) =>
    aCertificate({ notBefore: new Date(), notAfter: new Date(Date.now() + notAfter) });
  const store = async ({ pem: certificate }: { pem: string }) => {
    const state = Buffer.from(JSON.stringify({ account: {}, certificate, key: '' }));
    const encrypted = openKeyFile(keyFile).encrypt(state, 'acme_certificate').toString('hex');
    await query(`update acme_certificates set state = decode('${encrypted}', 'hex'), version = version + 1`);
  };
  await store(issued(90 * day));
  // A failed renewal matters only when it is late.
  expect(await failed(acme)).toEqual({});
  const began = new Date(Date.now() - 80 * day);
  await store(aCertificate({ notBefore: began, notAfter: new Date(Date.now() + 10 * day) }));
  expect(await failed(acme)).toEqual({ [name]: expect.stringMatching(/^expires .* does not resolve \| curl/) });

  expect(await failed({ ...acme, CLOUDYARD_KEY_FILE: join(folder, 'absent.keys') })).toEqual({
    [name]: expect.stringContaining('cannot be read: key file'),
  });
  await query('delete from acme_certificates');
});

it('the key file of another installation, or none, is found by the data that it does not decrypt', async () => {
  const [own, other] = ['own.keys', 'other.keys'].map((name) => join(folder, name)) as [string, string];
  openKeyFile(other).encrypt(Buffer.from(''), '');
  const keys = openKeyFile(own).encrypt(Buffer.from('{}'), 'registry_authority').toString('hex');
  await query(`insert into registry_authority (id, keys) values (1, decode('${keys}', 'hex'))`);
  expect(await failed({ CLOUDYARD_KEY_FILE: own })).toEqual({});
  for (const file of [other, join(folder, 'absent.keys')]) {
    expect(await failed({ CLOUDYARD_KEY_FILE: file })).toEqual({
      'encrypted data': expect.stringMatching(/(which is not in|not found; restore) .* \| ls -l /),
    });
  }
  await query('delete from registry_authority');
});

it('each problem is named with a command that fixes it', async () => {
  chmodSync(join(folder, 'secret.keys'), 0o640);
  expect(await failed()).toEqual({
    'key file': `${folder}/secret.keys has mode 0640 | chmod 0600 ${folder}/secret.keys`,
  });
  chmodSync(join(folder, 'secret.keys'), 0o600);
  const blank = join(folder, "Ann's keys");
  writeFileSync(blank, keyLine, { mode: 0o644 });
  expect(await failed({ CLOUDYARD_KEY_FILE: blank })).toEqual({
    'key file': expect.stringContaining(`| chmod 0600 '${folder}/Ann'\\''s keys'`),
  });
  for (const text of ['', 'damaged']) {
    writeFileSync(join(folder, 'secret.keys'), text);
    expect(await failed()).toEqual({
      'key file': expect.stringMatching(/secret\.keys(:1 must be| has no key).* \| ls -l /),
    });
  }
  writeFileSync(join(folder, 'secret.keys'), keyLine);

  expect(await failed({}, 'no')).toEqual({
    clock: expect.stringMatching(/^not synchronized \| .*timedatectl set-ntp true$/),
  });
  expect(await failed({ CLOUDYARD_DISK_RESERVE: '90' })).toMatchObject({
    'disk space': expect.stringContaining(`| du -xh --max-depth=2 ${folder}`),
  });

  const schedule = { CLOUDYARD_BACKUP_SCHEDULE: '0 3 * * *' };
  await query(`insert into backup_runs (scheduled_at, started_at, ended_at, host, backup_id)
    values (now() - interval '3 days', now(), now() - interval '3 days', 'x', 'y')`);
  expect(await failed(schedule)).toMatchObject({
    backups: expect.stringMatching(/so the next one is late \| .* backup && /),
  });
  await query(
    `insert into backup_runs (scheduled_at, started_at, ended_at, host, error) values (now(), now(), now(), 'x', 'no space')`,
  );
  expect(await failed(schedule)).toMatchObject({ backups: expect.stringContaining('the last one failed: no space') });

  await query(
    'delete from drizzle.__drizzle_migrations where created_at = (select max(created_at) from drizzle.__drizzle_migrations)',
  );
  expect(await failed()).toEqual({ schema: expect.stringMatching(/; this version has .* \| .* migrate$/) });
  await query(`insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 9000000000000)`);
  expect(await failed()).toEqual({ schema: expect.stringMatching(/^newer than /) });
  expect(await failed({ DATABASE_URL: url.replace(/\/[^/]*$/, '/absent') })).toEqual({
    database: expect.stringContaining('cannot be checked'),
  });
});

it('commands that change settings of PostgreSQL run as its superuser', async () => {
  const settings = readSettings(
    { CLOUDYARD_DATA_DIR: folder, DATABASE_URL: url },
    checkoutPlaces(process.cwd()),
    false,
  );
  const findings = await checkInstallation(settings, async () => 'yes');
  // PostgreSQL of the tests is not durable.
  expect(findings.find(({ name }) => name === 'settings of PostgreSQL')!.remedy).toMatch(
    /^runuser -u postgres -- psql -c 'alter system set fsync = on' .*-c 'select pg_reload_conf\(\)' {4}# as root/,
  );
  expect(findings.find(({ name }) => name === 'connections')!.remedy).toMatch(
    /^runuser -u postgres -- psql -c 'alter system set max_connections = \d+' .*; then restart PostgreSQL$/,
  );
});

it('a PostgreSQL without a free connection is reported with the setting that limits them', async () => {
  const text = Buffer.from('SFATAL\0C53300\0Msorry, too many clients already\0\0');
  const head = Buffer.from('E\0\0\0\0');
  head.writeUInt32BE(text.length + 4, 1);
  const full = createServer((socket) => socket.once('data', () => socket.end(Buffer.concat([head, text]))));
  full.listen(0, '127.0.0.1');
  await once(full, 'listening');
  onTestFinished(() => void full.close());
  const { port } = full.address() as AddressInfo;
  expect(await failed({ DATABASE_URL: `postgres://me@127.0.0.1:${port}/full` })).toEqual({
    database: expect.stringMatching(/too many clients already \| runuser .* 'show max_connections' /),
  });
});

it('a pooler without a free session is reported, and ends the check', async () => {
  // AuthenticationOk and ReadyForQuery.
  const accepted = Buffer.from('5200000008000000005a0000000549', 'hex');
  const pooler = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.write(accepted));
  });
  pooler.listen(0, '127.0.0.1');
  await once(pooler, 'listening');
  onTestFinished(() => void pooler.close());
  const { port } = pooler.address() as AddressInfo;
  expect(await failed({ DATABASE_URL: `postgres://me@127.0.0.1:${port}/full` })).toEqual({
    database: expect.stringMatching(/a pooler may have no free session .* doctor {4}# when PostgreSQL answers$/),
  });
}, 20_000);
