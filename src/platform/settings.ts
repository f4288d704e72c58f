/**
 * The settings of Cloudyard itself, read once from the environment by main/ and passed on as plain data. The settings of
 * drivers are in drivers/kinds.ts; main/settings.ts puts both together. docs/operating.md lists these.
 */
import { join, resolve } from 'node:path';
import { canonicalNetwork } from './network-address.ts';
import type { SettingReader } from './setting-reader.ts';

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
  /** What one client of weight 1 may take; docs/guides/fair-use.md. */
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
  /** Where clients reach the API, without a slash at the end; absent: where its servers listen. */
  publicUrl: string | undefined;
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

/** For `cloudyard help`, and for the test that compares them with docs/operating.md. */
export const coreSettingNames = [
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
  'CLOUDYARD_PUBLIC_URL',
  'CLOUDYARD_NOTIFICATION_WINDOW_SECONDS',
  'CLOUDYARD_WORKER_CONCURRENCY',
  'CLOUDYARD_WORKER_PORT',
  'CLOUDYARD_SWEEP_SECONDS',
  'CLOUDYARD_DEV',
] as const;

type Name = (typeof coreSettingNames)[number];

export const defaultClientLimits: Settings['clientLimits'] = {
  requestsPerSecond: 0,
  requestBurst: 0,
  openRequests: 500,
  openWaits: 500,
  tasks: 10_000,
  reconcileSlots: 0,
};

/** `root` is the checkout, where the data directory lies unless CLOUDYARD_DATA_DIR names another. */
export function readCoreSettings(reader: SettingReader<Name>, root: string, terminal: boolean): Settings {
  const { text, integer, choice, reject } = reader;
  const host = text('CLOUDYARD_HOST') ?? '127.0.0.1';
  const dataDir = resolve(root, text('CLOUDYARD_DATA_DIR') ?? 'data');
  const bootstrapToken = text('CLOUDYARD_BOOTSTRAP_TOKEN');
  if (bootstrapToken && /\s/.test(bootstrapToken)) reject('CLOUDYARD_BOOTSTRAP_TOKEN must not contain white space');
  const perMinute = integer('CLOUDYARD_RATE_LIMIT', 0, 0, 1_000_000);
  const perSecond = integer('CLOUDYARD_CLIENT_REQUESTS_PER_SECOND', 0, 0, 1_000_000);
  if (perMinute > 0 && perSecond > 0) {
    reject('CLOUDYARD_RATE_LIMIT conflicts with CLOUDYARD_CLIENT_REQUESTS_PER_SECOND; set only one');
  }
  return {
    host,
    port: integer('CLOUDYARD_PORT', 8080, 0, 65535),
    portIsFixed: text('CLOUDYARD_PORT') !== undefined,
    dataDir,
    databaseUrl: text('DATABASE_URL'),
    databasePoolSize: integer('CLOUDYARD_DATABASE_POOL_SIZE', 8, 2, 100),
    keyFile: resolve(root, text('CLOUDYARD_KEY_FILE') ?? join(dataDir, 'secret.keys')),
    bootstrapToken,
    regionsFile: text('CLOUDYARD_REGIONS_FILE'),
    quotasFile: text('CLOUDYARD_QUOTAS_FILE'),
    trustedProxies: networksIn('CLOUDYARD_TRUSTED_PROXIES', text('CLOUDYARD_TRUSTED_PROXIES'), reject),
    clientLimits: {
      requestsPerSecond: perMinute > 0 ? perMinute / 60 : perSecond,
      requestBurst: Math.max(perMinute, perSecond),
      openRequests: integer('CLOUDYARD_CLIENT_OPEN_REQUESTS', defaultClientLimits.openRequests, 1, 100_000),
      openWaits: integer('CLOUDYARD_CLIENT_OPEN_WAITS', defaultClientLimits.openWaits, 1, 100_000),
      tasks: integer('CLOUDYARD_CLIENT_TASKS', defaultClientLimits.tasks, 1, 10_000_000),
      reconcileSlots: integer('CLOUDYARD_CLIENT_RECONCILE_SLOTS', 0, 0, 100),
    },
    auditDays: integer('CLOUDYARD_AUDIT_DAYS', 365, 0, 36_500),
    verifyNetworks: networksIn('CLOUDYARD_VERIFY_NETWORKS', text('CLOUDYARD_VERIFY_NETWORKS'), reject),
    logLevel: choice('CLOUDYARD_LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'info'),
    logFormat: choice('CLOUDYARD_LOG_FORMAT', ['json', 'pretty'], terminal ? 'pretty' : 'json'),
    publicUrl: publicUrlIn(text('CLOUDYARD_PUBLIC_URL'), reject),
    notificationWindowSeconds: integer('CLOUDYARD_NOTIFICATION_WINDOW_SECONDS', 5, 0, 3600),
    workerConcurrency: integer('CLOUDYARD_WORKER_CONCURRENCY', 8, 1, 100),
    workerPort: integer('CLOUDYARD_WORKER_PORT', 0, 0, 65535),
    sweepSeconds: integer('CLOUDYARD_SWEEP_SECONDS', 300, 1, 86_400),
    development: choice('CLOUDYARD_DEV', ['0', '1'], '0') === '1',
  };
}

function publicUrlIn(given: string | undefined, reject: SettingReader['reject']): string | undefined {
  if (given === undefined) return undefined;
  if (URL.canParse(given) && /^https?:\/\/[^?#]+$/.test(given)) return given.replace(/\/+$/, '');
  reject(`CLOUDYARD_PUBLIC_URL is ${JSON.stringify(given)}; it must be a URL such as https://cloud.example.org`);
  return undefined;
}

/** Addresses and CIDRs, separated by commas. */
function networksIn(name: Name, given: string | undefined, reject: SettingReader['reject']): string[] {
  return (given?.split(',') ?? []).flatMap((part) => {
    const network = canonicalNetwork(part.trim());
    if (!network) reject(`${name}: ${JSON.stringify(part.trim())} is no address, and no network without host bits`);
    return network ? [network] : [];
  });
}
