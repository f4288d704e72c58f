/** Wires everything that does not listen or run by itself: the same for servers, workers, commands and tests. */
import { dirname, join, resolve } from 'node:path';
import { createAudit } from '../audit/audit.ts';
import { createVerifyLogin } from '../drivers/registry-login/login.ts';
import { faultOfUrl, refusalOfTarget } from '../drivers/webhook/target.ts';
import { createIdempotency } from '../idempotency/idempotency.ts';
import { systemClock } from '../platform/clock.ts';
import type { Clock } from '../platform/clock.ts';
import type { Db } from '../platform/db.ts';
import type { MovableClock } from '../platform/development-clock.ts';
import type { Logger } from '../platform/log.ts';
import type { Keyring } from '../platform/encryption.ts';
import { recentLocalNetworks } from '../platform/local-networks.ts';
import { createMemberRules } from '../platform/member-networks.ts';
import type { MemberRulesOptions } from '../platform/member-networks.ts';
import { createMetrics } from '../platform/metrics.ts';
import { createReferenceCaches } from '../platform/reference-cache.ts';
import { defaultClientLimits } from '../platform/settings.ts';
import type { Settings } from '../platform/settings.ts';
import { readYamlFile } from '../platform/yaml-file.ts';
import type { DefaultLimits } from '../quota/quota.ts';
import { createQuotaAudit } from '../quota/audit.ts';
import { createQuota } from '../quota/quota.ts';
import { globalKinds, regionalKinds } from '../quota/kinds.ts';
import { createKeyCache } from '../resources/api-keys/key-cache.ts';
import { createApiKeys } from '../resources/api-keys/service.ts';
import { createAuditLog } from '../resources/audit/service.ts';
import { createClients } from '../resources/clients/service.ts';
import { createDevelopment } from '../resources/development/service.ts';
import { createFileShares } from '../resources/file-shares/service.ts';
import { createLbPools } from '../resources/load-balancers/pools/service.ts';
import { createLifecyclePolicyRuns } from '../resources/lifecycle-policies/runs/service.ts';
import { createLifecyclePolicies } from '../resources/lifecycle-policies/service.ts';
import { resources } from '../resources/list.ts';
import type { ReencryptionServices } from '../resources/list.ts';
import { createListeners } from '../resources/load-balancers/listeners/service.ts';
import { createLoadBalancerChanges } from '../resources/load-balancers/locked-changes.ts';
import { createLoadBalancers } from '../resources/load-balancers/service.ts';
import { usesOfSecret } from '../resources/load-balancers/store.ts';
import { statsOfListeners } from '../resources/load-balancers/traffic/store.ts';
import { createNetworks } from '../resources/networks/service.ts';
import { createNotifications } from '../resources/notifications/service.ts';
import { PriceBook } from '../resources/pricing/schema.ts';
import { checkPriceBook, createPricing } from '../resources/pricing/service.ts';
import type { BookOfRegion } from '../resources/pricing/service.ts';
import { createProjects } from '../resources/projects/service.ts';
import { QuotasFile } from '../resources/quotas/schema.ts';
import { createClientQuotas } from '../resources/quotas/service.ts';
import { createPullSecrets } from '../resources/pull-secrets/service.ts';
import { RegionsFile } from '../resources/regions/schema.ts';
import type { RegionConfiguration } from '../resources/regions/schema.ts';
import { checkRegions, loadRegions, memberNetworksOf } from '../resources/regions/service.ts';
import { createRegistries } from '../resources/registries/service.ts';
import { createSecrets } from '../resources/secrets/service.ts';
import { createSnapshots } from '../resources/snapshots/service.ts';
import { createSubnets } from '../resources/subnets/service.ts';
import { createTaskViews } from '../resources/tasks/service.ts';
import { createThresholds } from '../resources/thresholds/service.ts';
import { createTokens } from '../resources/tokens/service.ts';
import { createVolumes } from '../resources/volumes/service.ts';
import { createWebhooks } from '../resources/webhooks/service.ts';
import { createBacklog } from '../tasks/backlog.ts';
import { countJobs } from '../tasks/queue.ts';
import { createTasks } from '../tasks/tasks.ts';
import { root } from './root.ts';

export function configurationFiles(settings: Settings): { regions: string; quotas: string } {
  return {
    regions: settings.regionsFile ?? join(root, 'config', 'regions.yaml'),
    quotas: settings.quotasFile ?? join(root, 'config', 'quotas.yaml'),
  };
}

/** What the files in config/ (or the operator's own) say. */
export interface Configuration {
  regions: RegionConfiguration[];
  defaultLimits: DefaultLimits;
  bookOfRegion: BookOfRegion;
}

/**
 * Reads the regions, quotas and price files. A broken price book does not keep the server from starting: it is logged,
 * line by line, and previews of its region answer `price_status: "error"`.
 * @throws ConfigurationFileError for the other two
 */
export function readConfiguration(files: { regions: string; quotas: string }, log: Logger): Configuration {
  const { regions } = readYamlFile(files.regions, RegionsFile, ({ regions }) => checkRegions(regions));
  const limits = readYamlFile(files.quotas, QuotasFile).default_limits as Partial<DefaultLimits>;
  const books = new Map<number, PriceBook | Error>();
  for (const { id, price_book } of regions) {
    if (price_book === undefined) continue;
    try {
      books.set(id, readYamlFile(resolve(dirname(files.regions), price_book), PriceBook, checkPriceBook));
    } catch (error) {
      log.error({ regionId: id, faults: (error as Error).message.split('\n') }, 'the price book is broken');
      books.set(id, error as Error);
    }
  }
  return {
    regions,
    defaultLimits: Object.fromEntries(
      [...regionalKinds, ...globalKinds].map((kind) => [kind, limits[kind] ?? 0]),
    ) as DefaultLimits,
    bookOfRegion(regionId) {
      const book = books.get(regionId) ?? null;
      if (book instanceof Error) throw book;
      return book;
    },
  };
}

export type Services = Awaited<ReturnType<typeof createServices>>;

export interface ServicesDeps {
  db: Db;
  clock: Clock;
  /** The same clock, where clients may move it. */
  movableClock?: MovableClock | null;
  log: Logger;
  configuration: Configuration;
  /** What secrets are encrypted with. */
  keyring: Keyring;
  /** Where clients reach the API; absent: where its servers say that they listen. */
  publicUrl?: string | undefined;
  /** How long a notification waits for others that belong to it; 5 where not given. */
  notificationWindowSeconds?: number;
  /** Whether webhooks may go to addresses that are not on the public internet; false where not given. */
  webhookAllowPrivate?: boolean;
  /** How long the audit log keeps an entry; 0: for ever; 365 where not given. */
  auditDays?: number;
  /** What one client may take; the defaults of the settings where not given. */
  clientLimits?: Settings['clientLimits'];
  /** CIDRs of registries that pull secrets are verified against, beside the public internet. */
  verifyNetworks?: readonly string[];
  /** What load balancers must not carry clients to; absent: nothing beside what the regions file says. */
  controlPlane?: Pick<MemberRulesOptions, 'controlPlane' | 'ownPorts'>;
  /** What this host delivers to itself; read from the kernel where not given. */
  localNetworks?: () => readonly string[];
}

export async function createServices(deps: ServicesDeps) {
  const { db, clock, configuration, keyring } = deps;
  const metrics = createMetrics();
  const hostClock = deps.movableClock ? systemClock : clock;
  const caches = createReferenceCaches(db);
  const audit = createAudit({ clock, keepDays: deps.auditDays ?? 365 });
  const idempotency = createIdempotency(clock, keyring, audit);
  const quota = createQuota(configuration.defaultLimits, deps.notificationWindowSeconds ?? 5);
  const { tasks: limit } = deps.clientLimits ?? defaultClientLimits;
  const backlog = createBacklog({ db, limit, onRefusal: () => metrics.countRefusal('tasks') });
  const tasks = createTasks(clock, backlog, metrics.observeTask);
  const regions = await loadRegions(db, clock, configuration.regions);
  const shared = { db, clock, tasks, quota, audit, idempotency, regions, caches };
  const networks = createNetworks(shared);
  const subnets = createSubnets(shared);
  const secrets = createSecrets({ ...shared, keyring, usedBy: [usesOfSecret] });
  const tokens = createTokens(shared);
  const registries = createRegistries({ ...shared, hostClock, keyring, tokens, publicUrl: deps.publicUrl });
  const verifyLogin = createVerifyLogin({ networks: deps.verifyNetworks ?? [], isOwn: registries.isOwn });
  const pullSecrets = createPullSecrets({ ...shared, keyring, verifyLogin });
  const apiKeys = createApiKeys({ ...shared, keyCache: createKeyCache({ ...shared, log: deps.log }) });
  const usedBy = resources.flatMap(({ usesOfProject }) => usesOfProject ?? []);
  const projects = createProjects({ ...shared, usedBy });
  const clients = createClients({ ...shared, projects, networks });
  const notifications = createNotifications({ ...shared, clients });
  const webhooks = createWebhooks({ ...shared, keyring, clients, refuseUrl: refuseUrl(deps.webhookAllowPrivate) });
  const loadBalancerChanges = createLoadBalancerChanges(shared);
  const memberRules = memberRulesOf(deps);
  const parts = { ...shared, changes: loadBalancerChanges, secrets, memberRules };
  const taskViews = createTaskViews(shared);
  const lbPools = createLbPools({ ...parts, untilEnd: taskViews.untilEnd });
  const listeners = createListeners({ ...parts, lbPools, stats: (ids) => statsOfListeners(db, ids) });
  const snapshots = createSnapshots(shared);
  const volumes = createVolumes({
    ...shared,
    snapshots,
    joinPolicies: (...volume) => lifecyclePolicies.joinNewVolume(...volume),
  });
  const pricing = createPricing(configuration.bookOfRegion, deps.log, { volumes, snapshots });
  const lifecyclePolicies = createLifecyclePolicies({ ...shared, pricing });
  const lifecyclePolicyRuns = createLifecyclePolicyRuns({ db, clock, policies: lifecyclePolicies });
  metrics.watchQueue(() => countJobs(db));
  metrics.watchSchedules(() => lifecyclePolicyRuns.lateness(regions.all().map(({ id }) => id)));
  const services = {
    db,
    clock,
    log: deps.log,
    metrics,
    caches,
    audit,
    idempotency,
    quota,
    quotaAudit: createQuotaAudit(
      db,
      quota,
      resources.flatMap(({ usageOfRows }) => usageOfRows ?? []),
    ),
    tasks,
    regions,
    networks,
    subnets,
    secrets,
    projects,
    clients,
    tokens,
    fileShares: createFileShares({ ...shared, networks }),
    memberRules,
    loadBalancers: createLoadBalancers({ ...shared, networks, changes: loadBalancerChanges, listeners }),
    listeners,
    lbPools,
    registries,
    snapshots,
    volumes,
    lifecyclePolicies,
    lifecyclePolicyRuns,
    development: deps.movableClock
      ? createDevelopment({
          db,
          idempotency,
          clock: deps.movableClock,
          policies: lifecyclePolicies,
          snapshots,
          runs: lifecyclePolicyRuns,
        })
      : null,
    pricing,
    clientQuotas: createClientQuotas({ ...shared, clients }),
    thresholds: createThresholds({ ...shared, clients, notifications }),
    notifications,
    webhooks,
    apiKeys,
    pullSecrets,
    auditLog: createAuditLog(shared),
    taskViews,
  };
  return { ...services, reencrypt: () => reencryptAll(services, () => idempotency.reencrypt(db)) };
}

function memberRulesOf({ configuration, controlPlane, localNetworks = recentLocalNetworks }: ServicesDeps) {
  return createMemberRules({
    regions: memberNetworksOf(configuration.regions),
    vipRanges: configuration.regions.flatMap(({ vip_range }) => vip_range ?? []),
    controlPlane: controlPlane?.controlPlane ?? (() => []),
    ownPorts: controlPlane?.ownPorts ?? (() => []),
    localNetworks,
  });
}

/** What keeps a webhook from having a URL, in words; null when nothing does. */
function refuseUrl(allowPrivate = false) {
  return async (url: string) => faultOfUrl(url) ?? (allowPrivate ? null : refusalOfTarget(url));
}

/**
 * Encrypts everything with the current key. Returns how much another key had encrypted.
 * @throws EncryptionError of the first resource that has a ciphertext which does not decrypt, after all others are done
 */
async function reencryptAll(services: ReencryptionServices, reencryptAnswers: () => Promise<number>): Promise<number> {
  const all = resources.flatMap(({ reencrypt }) => (reencrypt ? () => reencrypt(services as never) : []));
  let sum = 0;
  const failures: unknown[] = [];
  for (const reencrypt of [...all, reencryptAnswers]) {
    await reencrypt().then(
      (count) => (sum += count),
      (error: unknown) => failures.push(error),
    );
  }
  if (failures.length > 0) throw failures[0];
  return sum;
}
