/**
 * The settings of Cloudyard itself, read once from the environment by main/ and passed on as plain data. The settings of
 * drivers are in drivers/kinds.ts; main/settings.ts puts both together. setting-meanings.ts describes these.
 */
import { isIP } from 'node:net';
import { availableParallelism, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { canonicalNetwork } from './network-address.ts';
import { readOidcSettings } from './oidc-settings.ts';
import type { CoreSettingName } from './setting-meanings.ts';
import { createSettingReader, type SettingReader } from './setting-reader.ts';
import { readTlsSettings } from './tls/settings.ts';
import { readTracingSettings } from './tracing/settings.ts';

export type CoreSettings = ReturnType<typeof readCoreSettings>;

/** A session ends after this time in any case. */
export const maxSessionSeconds = 7 * 86_400;

const maxProcesses = 64;

/** Relative paths start at `base`; `dataDir` is the default of CLOUDYARD_DATA_DIR. */
export function readCoreSettings(
  reader: SettingReader<CoreSettingName>,
  { base, dataDir: defaultDataDir }: { base: string; dataDir: string },
  terminal: boolean,
) {
  const { text, integer, choice, flag, reject } = reader;
  const host = reader.host('CLOUDYARD_HOST') ?? '127.0.0.1';
  const dataDir = resolve(base, text('CLOUDYARD_DATA_DIR') ?? defaultDataDir);
  const bootstrapToken = text('CLOUDYARD_BOOTSTRAP_TOKEN');
  if (bootstrapToken && /\s/.test(bootstrapToken)) reject('CLOUDYARD_BOOTSTRAP_TOKEN must not contain white space');
  if (bootstrapToken && /^[^$]*\$$/.test(bootstrapToken)) {
    reject('CLOUDYARD_BOOTSTRAP_TOKEN must have a secret after the `$`; in a shell, put it in single quotes');
  }
  const databaseUrl = text('DATABASE_URL');
  // The message does not contain the value, which may have a password.
  if (databaseUrl && !/^postgres(ql)?:\/\//.test(databaseUrl)) {
    reject('DATABASE_URL must be a URL such as postgres://user:password@127.0.0.1:5432/database');
  }
  const perMinute = integer('CLOUDYARD_RATE_LIMIT', 0, 0, 1_000_000);
  const perSecond = integer('CLOUDYARD_CLIENT_REQUESTS_PER_SECOND', 0, 0, 1_000_000);
  if (perMinute > 0 && perSecond > 0) {
    reject('CLOUDYARD_RATE_LIMIT conflicts with CLOUDYARD_CLIENT_REQUESTS_PER_SECOND; set only one');
  }
  const publicUrl = publicUrlIn(text('CLOUDYARD_PUBLIC_URL'), reject);
  const port = integer('CLOUDYARD_PORT', 8080, 0, 65535);
  const tls = readTlsSettings(reader);
  if (port > 0 && tls.redirectPort === port) {
    reject(`CLOUDYARD_HTTP_REDIRECT_PORT conflicts with CLOUDYARD_PORT: both are ${port}`);
  }
  return {
    /** The address that the API listens on. */
    host,
    port,
    /** True when CLOUDYARD_PORT is set: then a busy port is an error; otherwise the next free port is used. */
    portIsFixed: text('CLOUDYARD_PORT') !== undefined,
    /** Processes that serve the API. */
    processes: integer('CLOUDYARD_PROCESSES', 1, 1, maxProcesses, {
      auto: Math.min(availableParallelism(), maxProcesses),
    }),
    tls,
    /** State of this host: the embedded PostgreSQL, images of shares, state of drivers. Absolute. */
    dataDir,
    /** PostgreSQL 15 or newer; absent: the embedded one. */
    databaseUrl,
    databasePoolSize: integer('CLOUDYARD_DATABASE_POOL_SIZE', 8, 2, 100),
    /** The keys that encrypt secrets; the same file on all hosts. Absolute. */
    keyFile: resolve(base, text('CLOUDYARD_KEY_FILE') ?? join(dataDir, 'secret.keys')),
    /** The admin token `<id>$<secret>`; absent: the first start generates one. */
    bootstrapToken,
    /** YAML files; absent: the ones that ship in config/. */
    regionsFile: text('CLOUDYARD_REGIONS_FILE'),
    quotasFile: text('CLOUDYARD_QUOTAS_FILE'),
    /** CIDRs of reverse proxies whose `X-Forwarded-For` is trusted. */
    trustedProxies: networksIn('CLOUDYARD_TRUSTED_PROXIES', reader),
    /** Limits of one client of weight 1 (docs/guides/fair-use.md). */
    clientLimits: {
      /** On each server; 0: no limit. */
      requestsPerSecond: perMinute > 0 ? perMinute / 60 : perSecond,
      /** The most requests at once: those of the second or the minute that the setting names. */
      requestBurst: Math.max(perMinute, perSecond),
      /** On each server. */
      openRequests: integer('CLOUDYARD_CLIENT_OPEN_REQUESTS', 500, 1, 100_000),
      openWaits: integer('CLOUDYARD_CLIENT_OPEN_WAITS', 500, 1, 100_000),
      eventStreams: integer('CLOUDYARD_CLIENT_EVENT_STREAMS', 1000, 1, 100_000),
      /** Tasks that have not ended. */
      tasks: integer('CLOUDYARD_CLIENT_TASKS', 10_000, 1, 10_000_000),
      /** Jobs that run in one worker at once; 0: three quarters of its concurrency. */
      reconcileSlots: integer('CLOUDYARD_CLIENT_RECONCILE_SLOTS', 0, 0, 100),
    },
    /** Jobs in the queue, above which creates are refused. */
    maxBacklog: integer('CLOUDYARD_MAX_BACKLOG', 100_000, 1, 10_000_000),
    /** Days that the audit log keeps an entry; 0: forever. */
    auditDays: integer('CLOUDYARD_AUDIT_DAYS', 365, 0, 36_500),
    /** Days that an ended task is kept; 0: forever. */
    taskDays: integer('CLOUDYARD_TASK_DAYS', 90, 0, 36_500),
    /** Days that a notification is kept; 0: forever. */
    notificationDays: integer('CLOUDYARD_NOTIFICATION_DAYS', 90, 0, 36_500),
    /** CIDRs of registries that pull secrets are verified against, in addition to the public internet. */
    verifyNetworks: networksIn('CLOUDYARD_VERIFY_NETWORKS', reader),
    logLevel: choice('CLOUDYARD_LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'info'),
    logFormat: choice('CLOUDYARD_LOG_FORMAT', ['json', 'pretty'], terminal ? 'pretty' : 'json'),
    /** The URL of the API for clients, without a slash at the end; absent: the address that its servers listen on. */
    publicUrl,
    /** Sign-in with OpenID Connect; null: with tokens only. */
    oidc: readOidcSettings(reader, publicUrl),
    /** Where traces go; null: nowhere. */
    tracing: readTracingSettings(reader),
    /** How long a notification waits for others, to be sent as one message. */
    notificationWindowSeconds: integer('CLOUDYARD_NOTIFICATION_WINDOW_SECONDS', 5, 0, 3600),
    /** Jobs that a worker runs at once. */
    workerConcurrency: integer('CLOUDYARD_WORKER_CONCURRENCY', 8, 1, 100),
    /** The port of /healthz and /metrics in a process that is only a worker; 0: none. */
    workerPort: integer('CLOUDYARD_WORKER_PORT', 0, 0, 65535),
    /** Seconds between two scans for drift. */
    sweepSeconds: integer('CLOUDYARD_SWEEP_SECONDS', 300, 1, 86_400),
    /** A run of a lifecycle policy that is later than this is reported to its client. Default: more than a restart takes. */
    scheduleLateSeconds: integer('CLOUDYARD_SCHEDULE_LATE_SECONDS', 300, 1, 86_400),
    /** Percent of the filesystem of the data directory; with less free space, creates are refused. 0: no limit. */
    diskReserve: integer('CLOUDYARD_DISK_RESERVE', 5, 0, 90),
    /** This host in a region of several hosts. */
    agent: agentSettings(reader),
    /** Whether `start` leaves the programs that serve users running when it gets SIGTERM. */
    keepDataPlanes: flag('CLOUDYARD_KEEP_DATA_PLANES', false),
    /** Whether this server serves the console. */
    console: flag('CLOUDYARD_CONSOLE', true),
    /** Seconds without a request after which a session of the console ends. */
    sessionIdleSeconds: integer('CLOUDYARD_SESSION_IDLE_TIMEOUT', 8 * 3600, 1, maxSessionSeconds),
    /** Whether clients may move the clock and inject faults. */
    development: flag('CLOUDYARD_DEV', false),
    backup: backupSettings(reader, base, dataDir),
  };
}

/** Names of hosts, which are in paths of the API and in configurations. */
export const hostNamePattern = /^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,61}[a-zA-Z0-9])?$/;

function agentSettings({ text, reject }: SettingReader<CoreSettingName>) {
  const [name, address, device] = [
    text('CLOUDYARD_HOST_NAME'),
    text('CLOUDYARD_HOST_ADDRESS'),
    text('CLOUDYARD_HOST_INTERFACE'),
  ];
  if (name !== undefined && !hostNamePattern.test(name)) {
    reject('CLOUDYARD_HOST_NAME must be 1 to 63 letters, digits, dots and hyphens');
  }
  if (address !== undefined && isIP(address) === 0) reject('CLOUDYARD_HOST_ADDRESS must be an IP address');
  if (device !== undefined && !/^[^\s/:]{1,15}$/.test(device)) {
    reject('CLOUDYARD_HOST_INTERFACE must be the name of a network interface, such as eth0');
  }
  return {
    /** Unique in the region. */
    name: name ?? hostname(),
    /** Its address among the hosts; absent: the command `host` fails. */
    address,
    /** Where addresses that move are added; absent: the interface that has `address`. */
    interface: device,
  };
}

function backupSettings(reader: SettingReader<CoreSettingName>, base: string, dataDir: string) {
  const { text, path, integer, flag, reject } = reader;
  const passphraseFile = path('CLOUDYARD_BACKUP_PASSPHRASE_FILE');
  const ageRecipient = text('CLOUDYARD_BACKUP_AGE_RECIPIENT');
  if (passphraseFile !== undefined && ageRecipient !== undefined) {
    reject('CLOUDYARD_BACKUP_PASSPHRASE_FILE conflicts with CLOUDYARD_BACKUP_AGE_RECIPIENT; set only one');
  }
  if (ageRecipient !== undefined && !/^(age1|ssh-)[\w/+= -]+$/.test(ageRecipient)) {
    reject('CLOUDYARD_BACKUP_AGE_RECIPIENT must be a recipient of age, such as age1…, or a public key of ssh');
  }
  return {
    /** Where backups are stored unless a command names another place. Absolute. */
    dir: resolve(base, text('CLOUDYARD_BACKUP_DIR') ?? join(dataDir, 'backups')),
    /** A file with the passphrase that encrypts the key file in backups. */
    passphraseFile,
    /** Encrypts the key file in backups for this recipient of age instead. */
    ageRecipient,
    /** Whether the database is backed up before it is migrated. */
    beforeMigration: flag('CLOUDYARD_BACKUP_BEFORE_MIGRATION', true),
    /** Scheduled backups that are retained. */
    keep: integer('CLOUDYARD_BACKUP_KEEP', 7, 1, 10_000),
    /** Whether scheduled backups contain the data of tenants on the host that makes them. */
    withData: flag('CLOUDYARD_BACKUP_WITH_DATA', false),
  };
}

function publicUrlIn(given: string | undefined, reject: SettingReader['reject']): string | undefined {
  const problem = given === undefined ? null : publicUrlProblem(given);
  if (problem === null) return given?.replace(/\/+$/, '');
  reject(`CLOUDYARD_PUBLIC_URL ${problem}`);
  return undefined;
}

/** Clients receive the URL, so it has no password. The message omits a value with an `@`, because it may have one. */
function publicUrlProblem(given: string): string | null {
  const url = URL.parse(given);
  const named = given.includes('@') ? '' : `is ${JSON.stringify(given)}; it `;
  if (url && (url.username || url.password || /^https?:\/\/[^/?#]*@/.test(given))) {
    return 'must not contain a user name or a password';
  }
  if (!url || !/^https?:\/\/[^?#]/.test(given)) return `${named}must be a URL such as https://cloud.example.org`;
  return /[?#]/.test(given) ? `${named}must not have a query or a fragment` : null;
}

/** Addresses and CIDRs, separated by commas. */
function networksIn(name: CoreSettingName, { text, reject }: SettingReader<CoreSettingName>): string[] {
  return (text(name)?.split(',') ?? []).flatMap((part) => {
    const network = canonicalNetwork(part.trim());
    if (!network) reject(`${name}: ${JSON.stringify(part.trim())} must be an address or a CIDR without host bits`);
    return network ? [network] : [];
  });
}

/** The settings of an empty environment. */
export const defaultSettings: CoreSettings = readCoreSettings(
  createSettingReader({}, '.'),
  { base: '.', dataDir: '.' },
  false,
);
