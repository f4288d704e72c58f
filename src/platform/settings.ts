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
  /** Requests a minute and token; 0: no limit. */
  rateLimit: number;
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
  /** `auto` takes HAProxy where it can run, and only pretends elsewhere. */
  loadBalancerDriver: 'auto' | 'haproxy' | 'simulated';
  /** Jobs that a worker runs at once. */
  workerConcurrency: number;
  /** Where a process that is only a worker serves /healthz and /metrics; 0: nowhere. */
  workerPort: number;
  /** Seconds between two looks at everything for drift. */
  sweepSeconds: number;
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
  'CLOUDYARD_RATE_LIMIT',
  'CLOUDYARD_AUDIT_DAYS',
  'CLOUDYARD_VERIFY_NETWORKS',
  'CLOUDYARD_LOG_LEVEL',
  'CLOUDYARD_LOG_FORMAT',
  'CLOUDYARD_FILE_SHARE_DRIVER',
  'CLOUDYARD_NFS_HOST',
  'CLOUDYARD_NFS_PORT',
  'CLOUDYARD_NFS_MOUNT_PORT',
  'CLOUDYARD_LOAD_BALANCER_DRIVER',
  'CLOUDYARD_WORKER_CONCURRENCY',
  'CLOUDYARD_WORKER_PORT',
  'CLOUDYARD_SWEEP_SECONDS',
] as const;

type Name = (typeof settingNames)[number];

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
    rateLimit: whole('CLOUDYARD_RATE_LIMIT', 0, 0, 1_000_000),
    auditDays: whole('CLOUDYARD_AUDIT_DAYS', 365, 0, 36_500),
    verifyNetworks: networksIn('CLOUDYARD_VERIFY_NETWORKS', text('CLOUDYARD_VERIFY_NETWORKS'), faults),
    logLevel: choice('CLOUDYARD_LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'info'),
    logFormat: choice('CLOUDYARD_LOG_FORMAT', ['json', 'pretty'], terminal ? 'pretty' : 'json'),
    fileShareDriver: choice('CLOUDYARD_FILE_SHARE_DRIVER', ['auto', 'ganesha', 'simulated'], 'auto'),
    nfsHost: text('CLOUDYARD_NFS_HOST') ?? (isWildcard(host) ? '127.0.0.1' : host),
    nfsPort,
    // 20048 is the customary port of mountd; beside another NFS port, the next one.
    nfsMountPort: whole('CLOUDYARD_NFS_MOUNT_PORT', nfsPort === 2049 ? 20048 : Math.min(nfsPort + 1, 65535), 1, 65535),
    loadBalancerDriver: choice('CLOUDYARD_LOAD_BALANCER_DRIVER', ['auto', 'haproxy', 'simulated'], 'auto'),
    workerConcurrency: whole('CLOUDYARD_WORKER_CONCURRENCY', 8, 1, 100),
    workerPort: whole('CLOUDYARD_WORKER_PORT', 0, 0, 65535),
    sweepSeconds: whole('CLOUDYARD_SWEEP_SECONDS', 300, 1, 86_400),
  };
  if (faults.length > 0) throw new SettingsError(faults.join('\n'));
  return settings;
}

/** Variables that look like settings and are none: most likely misspelled, so the start warns of them. */
export function unknownSettings(env: Record<string, string | undefined>): string[] {
  return Object.keys(env).filter((n) => n.startsWith('CLOUDYARD_') && !(settingNames as readonly string[]).includes(n));
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
