/**
 * Every setting of Cloudyard, read once from the environment by main/ and handed on as plain data.
 * docs/operating.md lists them; settings.test.ts holds the two together.
 */
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { canonicalNetwork } from './network-address.ts';

export interface Settings {
  /** Where the API listens. */
  host: string;
  port: number;
  /** True when CLOUDYARD_PORT was given: then a busy port is an error, otherwise the next free one is taken. */
  portIsFixed: boolean;
  /** State of this host: the embedded PostgreSQL, images of shares, what drivers remember. Absolute. */
  dataDir: string;
  /** Any PostgreSQL 15 or newer; the embedded one when absent. */
  databaseUrl: string | undefined;
  databasePoolSize: number;
  /** Keys that secrets are encrypted with; servers and workers on all hosts have the same. Absolute. */
  keyFile: string;
  /** The admin token `<id>$<secret>` that the first start would otherwise make up. */
  bootstrapToken: string | undefined;
  /** YAML files; absent: the ones that ship in config/. */
  regionsFile: string | undefined;
  quotasFile: string | undefined;
  /** CIDRs of reverse proxies whose `X-Forwarded-For` is believed. */
  trustedProxies: string[];
  /** What one client of weight 1 may take; docs/operating.md, "Fair use". */
  clientLimits: {
    /** On each server; 0: no limit. */
    requestsPerSecond: number;
    /** Requests at once before that counts. */
    requestBurst: number;
    /** On each server. */
    openRequests: number;
    openWaits: number;
    /** Tasks that have not ended. */
    tasks: number;
    /** Jobs that run in one worker; 0: three quarters of what it runs. */
    reconcileSlots: number;
  };
  /** Days that the audit log keeps an entry; 0: for ever. */
  auditDays: number;
  /** CIDRs of registries that pull secrets are verified against, beside the public internet. */
  verifyNetworks: string[];
  logLevel: string;
  logFormat: 'json' | 'pretty';
  /** `auto` takes Ganesha where it can run, and only pretends elsewhere. */
  fileShareDriver: 'auto' | 'ganesha' | 'simulated';
  /** The address or name that clients mount from, and its ports. */
  nfsHost: string;
  nfsPort: number;
  nfsMountPort: number;
  /** Whether NFSv3 is served as well as NFSv4. */
  nfsVersion3: boolean;
  /** `auto` takes HAProxy where it can run, and only pretends elsewhere. */
  loadBalancerDriver: 'auto' | 'haproxy' | 'simulated';
  /** `auto` keeps volumes in the data directory, and only pretends where that cannot be written to. */
  volumeDriver: 'auto' | 'disk' | 'simulated';
  /** Where clients reach the API, without a slash at the end; absent: where its servers listen. */
  publicUrl: string | undefined;
  /** `auto` takes CNCF distribution where it is installed, and only pretends elsewhere. */
  registryDriver: 'auto' | 'distribution' | 'simulated';
  /** The address or name that clients push to and pull from. */
  registryHost: string;
  registryPort: number;
  /** PEM files; null: plain HTTP. */
  registryTls: { certificate: string; key: string } | null;
  /** How long garbage collection keeps what a push may still need, seconds. */
  registryPatienceSeconds: number;
  /** `smtp[s]://[user:password@]host[:port]`; absent: e-mail is simulated. */
  smtpUrl: string | undefined;
  smtpFrom: string | undefined;
  webhookDriver: 'webhook' | 'simulated';
  /** Whether webhooks may go to loopback, private and link-local addresses. */
  webhookAllowPrivate: boolean;
  /** How long a notification waits for others that belong to it. */
  notificationWindowSeconds: number;
  /** Jobs that a worker runs at once. */
  workerConcurrency: number;
  /** Where a process that is only a worker serves /healthz and /metrics; 0: nowhere. */
  workerPort: number;
  /** Seconds between two looks at everything for drift. */
  sweepSeconds: number;
  /** Whether clients may move the clock and have operations fail. */
  development: boolean;
}

/** The settings as text, for `cloudyard help` and the parity test with docs/operating.md. */
export const settingNames = [
  'CLOUDYARD_HOST',
  'CLOUDYARD_PORT',
  'CLOUDYARD_DATA_DIR',
  'DATABASE_URL',
  'CLOUDYARD_DATABASE_POOL_SIZE',
  'CLOUDYARD_KEY_FILE',
  'CLOUDYARD_BOOTSTRAP_TOKEN',
  'CLOUDYARD_REGIONS_FILE',
  'CLOUDYARD_QUOTAS_FILE',
  'CLOUDYARD_TRUSTED_PROXIES',
  'CLOUDYARD_RATE_LIMIT',
  'CLOUDYARD_CLIENT_REQUESTS_PER_SECOND',
  'CLOUDYARD_CLIENT_OPEN_REQUESTS',
  'CLOUDYARD_CLIENT_OPEN_WAITS',
  'CLOUDYARD_CLIENT_TASKS',
  'CLOUDYARD_CLIENT_RECONCILE_SLOTS',
  'CLOUDYARD_AUDIT_DAYS',
  'CLOUDYARD_VERIFY_NETWORKS',
  'CLOUDYARD_LOG_LEVEL',
  'CLOUDYARD_LOG_FORMAT',
  'CLOUDYARD_FILE_SHARE_DRIVER',
  'CLOUDYARD_NFS_HOST',
  'CLOUDYARD_NFS_PORT',
  'CLOUDYARD_NFS_MOUNT_PORT',
  'CLOUDYARD_NFS_VERSIONS',
  'CLOUDYARD_LOAD_BALANCER_DRIVER',
  'CLOUDYARD_VOLUME_DRIVER',
  'CLOUDYARD_PUBLIC_URL',
  'CLOUDYARD_REGISTRY_DRIVER',
  'CLOUDYARD_REGISTRY_HOST',
  'CLOUDYARD_REGISTRY_PORT',
  'CLOUDYARD_REGISTRY_TLS_CERTIFICATE',
  'CLOUDYARD_REGISTRY_TLS_KEY',
  'CLOUDYARD_REGISTRY_PATIENCE_SECONDS',
  'CLOUDYARD_SMTP_URL',
  'CLOUDYARD_SMTP_FROM',
  'CLOUDYARD_WEBHOOK_DRIVER',
  'CLOUDYARD_WEBHOOK_ALLOW_PRIVATE',
  'CLOUDYARD_NOTIFICATION_WINDOW_SECONDS',
  'CLOUDYARD_WORKER_CONCURRENCY',
  'CLOUDYARD_WORKER_PORT',
  'CLOUDYARD_SWEEP_SECONDS',
  'CLOUDYARD_DEV',
] as const;

type Name = (typeof settingNames)[number];

export const defaultClientLimits: Settings['clientLimits'] = {
  requestsPerSecond: 0,
  requestBurst: 0,
  openRequests: 500,
  openWaits: 500,
  tasks: 10_000,
  reconcileSlots: 0,
};

export class SettingsError extends Error {}

/**
 * Reads the settings. `root` is the checkout, where the data directory lies unless CLOUDYARD_DATA_DIR names another.
 * @throws SettingsError that names every setting at fault
 */
export function readSettings(env: Record<string, string | undefined>, root: string, terminal: boolean): Settings {
  const faults: string[] = [];
  const text = (name: Name): string | undefined => env[name] || undefined;
  const whole = (name: Name, fallback: number, min: number, max: number): number => {
    const given = text(name);
    if (given === undefined) return fallback;
    const value = Number(given);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    faults.push(`${name} is ${JSON.stringify(given)}; it must be a whole number from ${min} to ${max}`);
    return fallback;
  };
  const choice = <T extends string>(name: Name, choices: readonly T[], fallback: T): T => {
    const given = text(name);
    if (given === undefined) return fallback;
    if ((choices as readonly string[]).includes(given)) return given as T;
    faults.push(`${name} is ${JSON.stringify(given)}; it must be one of ${choices.join(', ')}`);
    return fallback;
  };

  const host = text('CLOUDYARD_HOST') ?? '127.0.0.1';
  const dataDir = resolve(root, text('CLOUDYARD_DATA_DIR') ?? 'data');
  const nfsPort = whole('CLOUDYARD_NFS_PORT', 2049, 1, 65535);
  const bootstrapToken = text('CLOUDYARD_BOOTSTRAP_TOKEN');
  if (bootstrapToken && /\s/.test(bootstrapToken))
    faults.push('CLOUDYARD_BOOTSTRAP_TOKEN must not contain white space');
  const [smtpUrl, smtpFrom] = [text('CLOUDYARD_SMTP_URL'), text('CLOUDYARD_SMTP_FROM')];
  faults.push(...smtpFaults(smtpUrl, smtpFrom));
  const perMinute = whole('CLOUDYARD_RATE_LIMIT', 0, 0, 1_000_000);
  const perSecond = whole('CLOUDYARD_CLIENT_REQUESTS_PER_SECOND', 0, 0, 1_000_000);
  if (perMinute > 0 && perSecond > 0) {
    faults.push('CLOUDYARD_RATE_LIMIT conflicts with CLOUDYARD_CLIENT_REQUESTS_PER_SECOND; set only one');
  }
  const settings: Settings = {
    host,
    port: whole('CLOUDYARD_PORT', 8080, 0, 65535),
    portIsFixed: text('CLOUDYARD_PORT') !== undefined,
    dataDir,
    databaseUrl: text('DATABASE_URL'),
    databasePoolSize: whole('CLOUDYARD_DATABASE_POOL_SIZE', 8, 2, 100),
    keyFile: resolve(root, text('CLOUDYARD_KEY_FILE') ?? join(dataDir, 'secret.keys')),
    bootstrapToken,
    regionsFile: text('CLOUDYARD_REGIONS_FILE'),
    quotasFile: text('CLOUDYARD_QUOTAS_FILE'),
    trustedProxies: networksIn('CLOUDYARD_TRUSTED_PROXIES', text('CLOUDYARD_TRUSTED_PROXIES'), faults),
    clientLimits: {
      requestsPerSecond: perMinute > 0 ? perMinute / 60 : perSecond,
      requestBurst: Math.max(perMinute, perSecond),
      openRequests: whole('CLOUDYARD_CLIENT_OPEN_REQUESTS', defaultClientLimits.openRequests, 1, 100_000),
      openWaits: whole('CLOUDYARD_CLIENT_OPEN_WAITS', defaultClientLimits.openWaits, 1, 100_000),
      tasks: whole('CLOUDYARD_CLIENT_TASKS', defaultClientLimits.tasks, 1, 10_000_000),
      reconcileSlots: whole('CLOUDYARD_CLIENT_RECONCILE_SLOTS', 0, 0, 100),
    },
    auditDays: whole('CLOUDYARD_AUDIT_DAYS', 365, 0, 36_500),
    verifyNetworks: networksIn('CLOUDYARD_VERIFY_NETWORKS', text('CLOUDYARD_VERIFY_NETWORKS'), faults),
    logLevel: choice('CLOUDYARD_LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'info'),
    logFormat: choice('CLOUDYARD_LOG_FORMAT', ['json', 'pretty'], terminal ? 'pretty' : 'json'),
    fileShareDriver: choice('CLOUDYARD_FILE_SHARE_DRIVER', ['auto', 'ganesha', 'simulated'], 'auto'),
    nfsHost: text('CLOUDYARD_NFS_HOST') ?? (isWildcard(host) ? '127.0.0.1' : host),
    nfsPort,
    // 20048 is the customary port of mountd; beside another NFS port, the next one.
    nfsMountPort: whole('CLOUDYARD_NFS_MOUNT_PORT', nfsPort === 2049 ? 20048 : Math.min(nfsPort + 1, 65535), 1, 65535),
    nfsVersion3: choice('CLOUDYARD_NFS_VERSIONS', ['3,4', '4'], '3,4') === '3,4',
    loadBalancerDriver: choice('CLOUDYARD_LOAD_BALANCER_DRIVER', ['auto', 'haproxy', 'simulated'], 'auto'),
    volumeDriver: choice('CLOUDYARD_VOLUME_DRIVER', ['auto', 'disk', 'simulated'], 'auto'),
    publicUrl: publicUrlIn(text('CLOUDYARD_PUBLIC_URL'), faults),
    registryDriver: choice('CLOUDYARD_REGISTRY_DRIVER', ['auto', 'distribution', 'simulated'], 'auto'),
    registryHost: text('CLOUDYARD_REGISTRY_HOST') ?? (isWildcard(host) ? '127.0.0.1' : host),
    registryPort: whole('CLOUDYARD_REGISTRY_PORT', 5000, 1, 65535),
    registryTls: tlsIn(root, text('CLOUDYARD_REGISTRY_TLS_CERTIFICATE'), text('CLOUDYARD_REGISTRY_TLS_KEY'), faults),
    registryPatienceSeconds: whole('CLOUDYARD_REGISTRY_PATIENCE_SECONDS', 600, 1, 86_400),
    smtpUrl,
    smtpFrom,
    webhookDriver: choice('CLOUDYARD_WEBHOOK_DRIVER', ['webhook', 'simulated'], 'webhook'),
    webhookAllowPrivate: whole('CLOUDYARD_WEBHOOK_ALLOW_PRIVATE', 0, 0, 1) === 1,
    notificationWindowSeconds: whole('CLOUDYARD_NOTIFICATION_WINDOW_SECONDS', 5, 0, 3600),
    workerConcurrency: whole('CLOUDYARD_WORKER_CONCURRENCY', 8, 1, 100),
    workerPort: whole('CLOUDYARD_WORKER_PORT', 0, 0, 65535),
    sweepSeconds: whole('CLOUDYARD_SWEEP_SECONDS', 300, 1, 86_400),
    development: choice('CLOUDYARD_DEV', ['0', '1'], '0') === '1',
  };
  if (faults.length > 0) throw new SettingsError(faults.join('\n'));
  return settings;
}

/** Variables that look like settings and are none: most likely misspelled, so the start warns of them. */
export function unknownSettings(env: Record<string, string | undefined>): string[] {
  return Object.keys(env).filter((n) => n.startsWith('CLOUDYARD_') && !(settingNames as readonly string[]).includes(n));
}

function publicUrlIn(given: string | undefined, faults: string[]): string | undefined {
  if (given === undefined) return undefined;
  if (URL.canParse(given) && /^https?:\/\/[^?#]+$/.test(given)) return given.replace(/\/+$/, '');
  faults.push(`CLOUDYARD_PUBLIC_URL is ${JSON.stringify(given)}; it must be a URL such as https://cloud.example.org`);
  return undefined;
}

function tlsIn(root: string, certificate: string | undefined, key: string | undefined, faults: string[]) {
  if (certificate && key) return { certificate: resolve(root, certificate), key: resolve(root, key) };
  if (certificate || key) {
    faults.push('CLOUDYARD_REGISTRY_TLS_CERTIFICATE and CLOUDYARD_REGISTRY_TLS_KEY are given together or not at all');
  }
  return null;
}

const sender = /^([^\s<>@,;"]+@[\w.-]+|[^<>\r\n]*<[^\s<>@,;"]+@[\w.-]+>)$/;

/** Neither value is repeated: the URL has a password in it. */
function smtpFaults(url: string | undefined, from: string | undefined): string[] {
  const faults: string[] = [];
  if (url !== undefined && !(URL.canParse(url) && /^smtps?:\/\/[^/?#]/.test(url))) {
    faults.push('CLOUDYARD_SMTP_URL must be such as smtp://user:password@mail.example.com:587, or smtps://…');
  }
  if (url !== undefined && from === undefined) faults.push('CLOUDYARD_SMTP_FROM is needed beside CLOUDYARD_SMTP_URL');
  if (from !== undefined && !sender.test(from)) {
    faults.push('CLOUDYARD_SMTP_FROM must be an address such as alerts@example.com, or Cloudyard <alerts@example.com>');
  }
  return faults;
}

/** Addresses and CIDRs, separated by commas. */
function networksIn(name: Name, given: string | undefined, faults: string[]): string[] {
  return (given?.split(',') ?? []).flatMap((part) => {
    const network = canonicalNetwork(part.trim());
    if (!network)
      faults.push(`${name}: ${JSON.stringify(part.trim())} is no address, and no network without host bits`);
    return network ? [network] : [];
  });
}

function isWildcard(host: string): boolean {
  return isIP(host) !== 0 && /^[0:.]+$/.test(host);
}
