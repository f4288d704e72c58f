/**
 * What `doctor` checks on a running installation. Each check returns what it found, and commands that fix a failure.
 * Nothing is changed, and an embedded PostgreSQL that does not run is not started.
 */
import { X509Certificate } from 'node:crypto';
import { accessSync, constants, existsSync, lstatSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type pg from 'pg';
import { backupState, lateAfterMs, latenessMs } from '../backup/schedule.ts';
import { schemaOf } from '../backup/migrations.ts';
import { isStuck, notServing } from '../hosts/store.ts';
import { runChild } from '../platform/child-process.ts';
import { dayMs } from '../platform/clock.ts';
import { decryptState, findRow } from '../platform/acme/store.ts';
import type { Db } from '../platform/db.ts';
import { openKeyFile } from '../platform/key-file.ts';
import { silentLogger } from '../platform/log.ts';
import { diskStatus } from '../platform/disk-space.ts';
import { connectionToRunning } from '../platform/embedded-postgres.ts';
import { isDebianPackage } from '../platform/program-files.ts';
import { readOrEmpty } from '../platform/read-or-empty.ts';
import { shellWord } from '../platform/shell-word.ts';
import { type CertificateFiles, readCertificateFiles } from '../platform/tls/certificate-files.ts';
import { checkAuthority } from '../resources/registries/token-server/authority.ts';
import { readGroups } from '../resources/sign-in/groups.ts';
import { checkAccount } from './account-checks.ts';
import { migrations } from './backups.ts';
import { asSuperuser, withCheckedDatabase } from './checked-database.ts';
import { configurationFiles, readConfiguration } from './configuration.ts';
import type { Finding } from './finding.ts';
import { program } from './program.ts';
import { regionsOf } from './storage.ts';
import { checkReplication } from './replication-checks.ts';
import { localHost } from './service-checks.ts';
import type { Settings } from './settings.ts';
import { asRoot } from './start-table.ts';

const daysBeforeExpiry = 14;
const maxClockDifferenceMs = 2000;
const minFreeInodes = 0.05;

/** All checks, in the order of the output. `workerDirs`: data directories of workers beside that of the settings. */
export async function checkInstallation(
  settings: Settings,
  readClock = clockState,
  workerDirs = isDebianPackage ? workerDirectories(settings.dataDir) : [],
): Promise<Finding[]> {
  const disk = [checkDataDirectory(settings), checkDisk(settings), checkInodes(settings)];
  const disks = [...disk, ...workerDirs.flatMap((dataDir) => checkWorkerDirectory(dataDir, settings))];
  const host = [checkClock(await readClock()), ...disks, checkLoopDevices([settings.dataDir, ...workerDirs])];
  const files = [
    checkConfiguration(settings),
    checkKeyFile(settings),
    ...checkCertificateFiles(settings),
    ...checkAccount(settings),
  ];
  return [...host, ...files, ...(await checkDatabase(settings))];
}

/** The finding of `check`, which fails if it throws. `remedy`: unless the check has another one. */
function checked(name: string, remedy: string, check: () => Omit<Finding, 'name'>): Finding {
  try {
    return { name, remedy, ...check() };
  } catch (error) {
    return { name, ok: false, detail: (error as Error).message.replaceAll('\n', '; '), remedy };
  }
}

/** `yes`, `no`, or null if this host does not know. */
async function clockState(): Promise<string | null> {
  const command = ['show', '--property=NTPSynchronized', '--value'];
  return runChild('timedatectl', command).then(
    ({ stdout }) => stdout.trim(),
    () => null,
  );
}

function checkClock(state: string | null): Finding {
  const name = 'clock';
  if (state === null) return { name, ok: true, detail: 'synchronization unknown: timedatectl does not work here' };
  if (state !== 'no') return { name, ok: true, detail: 'synchronized' };
  return { name, ok: false, detail: 'not synchronized', remedy: asRoot('timedatectl set-ntp true') };
}

/** Before the first start: the folder in which it creates the data directory. */
function existing(dataDir: string): string {
  return existsSync(dataDir) ? dataDir : existing(dirname(dataDir));
}

/** Those of the services in the Debian package: `worker-1` beside `api` (packaging/deb). */
export function workerDirectories(dataDir: string): string[] {
  const folder = dirname(dataDir);
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const others = names.filter((name) => /^(worker|host)-\d+$/.test(name) && name !== basename(dataDir));
  return others.sort().map((name) => join(folder, name));
}

/** The tenants' data is often on a disk of its own. The worker is root, as the directory's owner; another user may only read it. */
function checkWorkerDirectory(dataDir: string, { diskReserve, dataDir: own }: Settings): Finding[] {
  const settings = { dataDir, diskReserve };
  const isRoot = process.getuid?.() === 0;
  const isOtherDisk = statSync(existing(dataDir)).dev !== statSync(existing(own)).dev;
  const found = [
    ...(isRoot ? [checkDataDirectory(settings)] : []),
    ...(isOtherDisk ? [checkDisk(settings), checkInodes(settings)] : []),
  ];
  return found.map((finding) => ({ ...finding, name: `${finding.name} of ${basename(dataDir)}` }));
}

/** Root may write everywhere, except to a filesystem that is read-only. */
function checkDataDirectory({ dataDir }: Pick<Settings, 'dataDir'>): Finding {
  const name = 'data directory';
  const folder = existing(dataDir);
  const remedy = `ls -ld ${shellWord(folder)}    # or set CLOUDYARD_DATA_DIR to another directory`;
  try {
    if (!statSync(folder).isDirectory()) return { name, ok: false, detail: `${folder} is not a directory`, remedy };
    accessSync(folder, constants.W_OK | constants.X_OK);
    return {
      name,
      ok: true,
      detail: folder === dataDir ? dataDir : `${dataDir} does not exist; the first start creates it`,
    };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { name, ok: false, detail: `this user cannot write to ${folder} (${code})`, remedy };
  }
}

function checkDisk({ dataDir, diskReserve }: Pick<Settings, 'dataDir' | 'diskReserve'>): Finding {
  const folder = existing(dataDir);
  const { healthy, detail } = diskStatus(folder, diskReserve);
  const remedy = `du -xh --max-depth=2 ${shellWord(folder)} | sort -h | tail`;
  return { name: 'disk space', ok: healthy, detail, remedy };
}

function checkInodes({ dataDir }: Pick<Settings, 'dataDir'>): Finding {
  return checked('inodes', `ls -ld ${shellWord(dataDir)}`, () => {
    const { files, ffree } = statfsSync(existing(dataDir));
    // Filesystems that allocate inodes on demand report none.
    const ok = files === 0 || ffree / files >= minFreeInodes;
    const detail = files === 0 ? 'allocated on demand' : `${ffree} of ${files} free`;
    return { ok, detail, remedy: `du --inodes -x --max-depth=3 ${shellWord(dataDir)} | sort -n | tail` };
  });
}

/** A device whose image was deleted is never used again, and keeps its space. */
function checkLoopDevices(dataDirs: string[]): Finding {
  const bound = (existsSync('/sys/block') ? readdirSync('/sys/block') : [])
    .filter((device) => device.startsWith('loop'))
    .map((device) => ({ device, file: readOrEmpty(`/sys/block/${device}/loop/backing_file`).trim() }))
    .filter(({ file }) => dataDirs.some((dataDir) => file.startsWith(`${dataDir}/`)));
  const lost = bound.filter(({ file }) => file.endsWith(' (deleted)')).map(({ device }) => `/dev/${device}`);
  const detail = `${bound.length} in use${lost.length > 0 ? `, ${lost.length} for a deleted image` : ''}`;
  const remedy = asRoot(`losetup --detach ${lost.join(' ')}`);
  return { name: 'loop devices', ok: lost.length === 0, detail, remedy };
}

/** The regions, quotas, price and groups files, as the next start reads them. */
function checkConfiguration(settings: Settings): Finding {
  return checked('configuration', `${program} doctor    # when you have corrected the file`, () => {
    const { regions, bookOfRegion } = readConfiguration(configurationFiles(settings), silentLogger);
    for (const { id } of regions) bookOfRegion(id);
    if (settings.oidc) readGroups(settings.oidc.groupsFile);
    return { ok: true, detail: `region ${regions.map(({ id }) => id).join(', ')}` };
  });
}

const remedyOfKeys = (keyFile: string) => `ls -l ${shellWord(keyFile)}    # docs/guides/encryption-keys.md`;

function checkKeyFile({ keyFile }: Settings): Finding {
  return checked('key file', remedyOfKeys(keyFile), () => {
    if (!lstatSync(keyFile, { throwIfNoEntry: false })) return { ok: true, detail: `${keyFile} does not exist yet` };
    const problem = openKeyFile(keyFile).findProblem();
    if (problem) return { ok: false, detail: problem };
    const { mode } = statSync(keyFile);
    const detail = `${keyFile} has mode ${(mode & 0o777).toString(8).padStart(4, '0')}`;
    return { ok: (mode & 0o077) === 0, detail, remedy: `chmod 0600 ${shellWord(keyFile)}` };
  });
}

/** The certificates that are files: of the API, and of registries. */
function checkCertificateFiles({ tls, drivers }: Settings): Finding[] {
  const all = { 'certificate of HTTPS': tls.files, 'certificate of registries': drivers.registry.tls };
  return Object.entries(all).flatMap(([name, files]) => (files ? [checkCertificate(name, files)] : []));
}

function checkCertificate(name: string, files: CertificateFiles): Finding {
  return checked(name, `openssl x509 -noout -subject -enddate -in ${shellWord(files.certificate)}`, () => {
    const { expiresAt } = readCertificateFiles(files);
    const ok = expiresAt.getTime() - Date.now() > daysBeforeExpiry * dayMs;
    return { ok, detail: `expires ${expiresAt.toISOString()}` };
  });
}

/** Whether this is the key file of the database: the first server has encrypted the keys of the token server. */
async function checkEncryption(client: pg.Client, { keyFile }: Settings): Promise<Finding[]> {
  const { exist, problem } = await checkAuthority({ $client: client }, openKeyFile(keyFile));
  if (!exist) return [];
  const name = 'encrypted data';
  if (problem) return [{ name, ok: false, detail: problem.message, remedy: remedyOfKeys(keyFile) }];
  return [{ name, ok: true, detail: 'decrypts with the key file' }];
}

async function checkDatabase(settings: Settings): Promise<Finding[]> {
  const name = 'database';
  const { databaseUrl, dataDir } = settings;
  const connection = databaseUrl ? { connectionString: databaseUrl } : connectionToRunning(dataDir);
  if (!connection) {
    const detail = 'the embedded PostgreSQL is not running, so nothing in the database was checked';
    return [{ name, ok: true, detail }];
  }
  return withCheckedDatabase(connection, (client) => checksIn(client, settings));
}

async function checksIn(client: pg.Client, settings: Settings): Promise<Finding[]> {
  const schema = await checkSchema(client);
  const spansHosts = regionsOf(settings).some(({ hosts }) => hosts !== undefined);
  const replication = settings.databaseUrl === undefined ? [] : await checkReplication(client, spansHosts);
  const all = [await checkClockOf(client), ...(await checkServer(client)), ...replication, schema];
  if (!schema.ok) return all;
  all.push(...(await checkEncryption(client, settings)));
  const listeners = await checkCertificates(client);
  const hosts = await checkHosts(client);
  return [...all, ...(await checkAcme(client, settings)), listeners, await checkBackups(client, settings), ...hosts];
}

async function checkClockOf(client: pg.Client): Promise<Finding> {
  const before = Date.now();
  const { rows } = await client.query<{ ms: number }>(
    'select extract(epoch from clock_timestamp())::float8 * 1000 as ms',
  );
  const difference = rows[0]!.ms - (before + Date.now()) / 2;
  const ok = Math.abs(difference) < maxClockDifferenceMs;
  const detail = `${Math.abs(Math.round(difference))} ms ${difference < 0 ? 'behind' : 'ahead of'} this host`;
  return { name: 'clock of PostgreSQL', ok, detail, remedy: asRoot('timedatectl set-ntp true') };
}

const restart = '; then restart PostgreSQL';

/** Settings that lose acknowledged changes, or that text of clients does not fit into. */
const required: Record<string, string[]> = {
  fsync: ['on'],
  full_page_writes: ['on'],
  // Of a replicated server `local` is not enough (replication-checks.ts).
  synchronous_commit: ['on', 'local', 'remote_write', 'remote_apply'],
  server_encoding: ['UTF8'],
};

async function checkServer(client: pg.Client): Promise<Finding[]> {
  const { rows } = await client.query<{
    name: string;
    setting: string;
    version: number;
    used: number;
    allowed: number;
  }>(
    `select name, setting, current_setting('server_version_num')::int / 10000 as version,
       (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as used,
       current_setting('max_connections')::int as allowed
     from pg_settings where name = any ($1) order by name`,
    [Object.keys(required)],
  );
  const wrong = rows.filter(({ name, setting }) => !required[name]!.includes(setting));
  const { version, used, allowed } = rows[0]!;
  const detail = wrong.map(({ name, setting }) => `${name} is ${setting}`).join(', ') || `version ${version}, durable`;
  const fix = wrong.map(({ name }) => `alter system set ${name} = ${required[name]![0]}`);
  return [
    {
      ...{ name: 'settings of PostgreSQL', ok: wrong.length === 0, detail },
      remedy: asSuperuser([...fix, 'select pg_reload_conf()'].join("' -c '")),
    },
    {
      ...{ name: 'connections', ok: used <= allowed * 0.9, detail: `${used} of ${allowed}` },
      remedy: asSuperuser(`alter system set max_connections = ${allowed * 2}`, restart),
    },
  ];
}

async function checkSchema(client: pg.Client): Promise<Finding> {
  const name = 'schema';
  const known = migrations();
  const newest = known.list.at(-1)!;
  const schema = await schemaOf(client, known);
  if (schema?.when === newest.when) return { name, ok: true, detail: schema.migration };
  if (schema && schema.when > newest.when) {
    const detail = `newer than ${newest.migration}, which this version has`;
    return { name, ok: false, detail, remedy: `${program} --version    # and install the version of the servers` };
  }
  const detail = `${schema?.migration ?? 'none'}; this version has ${newest.migration}`;
  return { name, ok: false, detail, remedy: `${program} migrate` };
}

/** The certificate that servers request from an ACME server, when a third of its life remains. */
async function checkAcme(client: pg.Client, { tls, keyFile, host, port }: Settings): Promise<Finding[]> {
  if (!tls.acme) return [];
  const name = 'certificate of HTTPS';
  const address = localHost(host);
  const authority = `${address.includes(':') ? `[${address}]` : address}:${port}`;
  const remedy = `curl -sk https://${authority}/healthz    # tls has the reason; docs/guides/tls.md`;
  try {
    const row = await findRow({ $client: client } as unknown as Db);
    const pem = row?.state ? decryptState(openKeyFile(keyFile), row.state).certificate : '';
    const reason = row?.error ? `; the last request failed: ${row.error}` : '';
    if (pem === '') return [{ name, ok: !row?.error, detail: `none yet${reason}`, remedy }];
    const { validFrom, validTo } = new X509Certificate(pem);
    const [start, end] = [Date.parse(validFrom), Date.parse(validTo)];
    const ok = end - Date.now() > (end - start) / 4;
    return [{ name, ok, detail: `expires ${new Date(end).toISOString()}${reason}`, remedy }];
  } catch (error) {
    return [{ name, ok: false, detail: `cannot be read: ${(error as Error).message}`, remedy }];
  }
}

/** Certificates that listeners of load balancers use. */
async function checkCertificates(client: pg.Client): Promise<Finding> {
  const { rows } = await client.query<{ id: string; name: string; project: number; not_after: Date }>(
    `select s.id, s.name, s.project_id as project, s.not_after from secrets s where s.not_after < now() + $1 * interval '1 day'
       and exists (select from lb_listeners l where l.secret_id = s.id or s.id = any (l.sni_secret_ids))
     order by s.not_after limit 20`,
    [daysBeforeExpiry],
  );
  const name = 'certificates of listeners';
  if (rows.length === 0) return { name, ok: true, detail: `none expires within ${daysBeforeExpiry} days` };
  const listed = rows.map((row) => `${row.name} (${row.id}, project ${row.project}) ${row.not_after.toISOString()}`);
  const remedy = `${program} audit export --table secrets --row ${rows[0]!.id}    # who uploaded it; its client replaces it`;
  return { name, ok: false, detail: `expired or about to expire: ${listed.join('; ')}`, remedy };
}

async function checkBackups(client: pg.Client, { nextBackup }: Settings): Promise<Finding> {
  const name = 'backups';
  const remedy = `${program} backup && ${program} restore --dry-run`;
  if (!nextBackup) {
    return { name, ok: true, detail: 'no schedule; set CLOUDYARD_BACKUP_SCHEDULE, or schedule them yourself' };
  }
  const now = new Date();
  const state = await backupState({ $client: client }, now);
  if (state.lastError !== null) return { name, ok: false, detail: `the last one failed: ${state.lastError}`, remedy };
  if (!state.lastSuccess) return { name, ok: true, detail: 'none yet' };
  const late = latenessMs(nextBackup, state, now, now);
  const detail = `the last one ended ${state.lastSuccess.endedAt.toISOString()}`;
  const ok = late < lateAfterMs;
  return { name, ok, detail: ok ? detail : `${detail}, so the next one is late`, remedy };
}

/** Hosts of regions that have several. */
async function checkHosts(client: pg.Client): Promise<Finding[]> {
  const { rows } = await client.query<{ region: number; name: string; lease: number; state: string; stuck: boolean }>(
    `select region_id as region, name, state, extract(epoch from lease_until - clock_timestamp())::float8 as lease,
       ${isStuck} as stuck
     from hosts h order by region_id, name`,
  );
  return rows.map(({ region, name: host, lease, state, stuck }) => {
    const name = `host ${host}`;
    if (lease <= 0) {
      const remedy = `${program} host forget ${region} ${host}    # if it does not return`;
      return { name, ok: false, detail: `its lease ended ${Math.round(-lease)} s ago`, remedy };
    }
    const remedy = `journalctl -u cloudyard-host@${region}    # on ${host}`;
    return { name, ok: !stuck, detail: stuck ? notServing : state, remedy };
  });
}
