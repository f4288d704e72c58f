/**
 * Constructs the engines and the service of each resource, for servers, workers, commands and tests alike. Nothing here
 * listens or runs by itself.
 */
import type pg from 'pg';
import { createAudit } from '../audit/audit.ts';
import { installAuditTriggers } from '../audit/triggers.ts';
import { type CheckPattern, createPatternCheck } from '../drivers/haproxy/pattern-check.ts';
import { PEER_PORT } from '../drivers/load-balancer.ts';
import { createVerifyLogin } from '../drivers/registry-login/login.ts';
import { errorOfUrl, refusalOfUrl } from '../drivers/webhook/allowed-url.ts';
import { installEventTriggers } from '../events/triggers.ts';
import { reencryptPublished } from '../hosts/reencrypt.ts';
import { listHosts } from '../hosts/store.ts';
import { createIdempotency } from '../idempotency/idempotency.ts';
import { reencryptAcme } from '../platform/acme/store.ts';
import { type Clock, systemClock } from '../platform/clock.ts';
import type { Db } from '../platform/db.ts';
import type { MovableClock } from '../platform/development-clock.ts';
import type { Logger } from '../platform/log.ts';
import type { Keyring } from '../platform/encryption.ts';
import { recentLocalNetworks } from '../platform/local-networks.ts';
import { createListener } from '../platform/listener.ts';
import { createMemberRules, type MemberRulesOptions } from '../platform/member-networks.ts';
import { createMetrics } from '../platform/metrics.ts';
import { createReferenceCaches } from '../platform/reference-cache.ts';
import { type CoreSettings, defaultSettings } from '../platform/settings.ts';
import { createQuotaAudit } from '../quota/audit.ts';
import { createQuota } from '../quota/quota.ts';
import { createKeyCache } from '../resources/api-keys/key-cache.ts';
import { createApiKeys } from '../resources/api-keys/service.ts';
import { createAuditLog } from '../resources/audit/service.ts';
import { createClients } from '../resources/clients/service.ts';
import { createDevelopment } from '../resources/development/service.ts';
import { createFileShares } from '../resources/file-shares/service.ts';
import { createL7Policies } from '../resources/load-balancers/l7-policies/service.ts';
import { createPools } from '../resources/load-balancers/pools/service.ts';
import { createMissedRuns } from '../resources/lifecycle-policies/missed-runs/service.ts';
import { createRequestedRuns } from '../resources/lifecycle-policies/requested-runs/service.ts';
import { createLifecyclePolicySchedules } from '../resources/lifecycle-policies/schedule/service.ts';
import { createLifecyclePolicyRuns } from '../resources/lifecycle-policies/runs/service.ts';
import { createLifecyclePolicies } from '../resources/lifecycle-policies/service.ts';
import { createEvents } from '../resources/events/service.ts';
import { eventSources, type ReencryptionServices, resources } from '../resources/list.ts';
import { createListeners } from '../resources/load-balancers/listeners/service.ts';
import { createLoadBalancerChanges } from '../resources/load-balancers/locked-changes.ts';
import { createLoadBalancers } from '../resources/load-balancers/service.ts';
import { usesOfSecret } from '../resources/load-balancers/store.ts';
import { createNetworks } from '../resources/networks/service.ts';
import { createHosts } from '../resources/hosts/service.ts';
import { createNotifications } from '../resources/notifications/service.ts';
import { createPricing } from '../resources/pricing/service.ts';
import { createProjects } from '../resources/projects/service.ts';
import { createQuotaRequests } from '../resources/quota-requests/service.ts';
import { createClientQuotas } from '../resources/quotas/service.ts';
import { createPullSecrets } from '../resources/pull-secrets/service.ts';
import { loadRegions, memberNetworksOf } from '../resources/regions/service.ts';
import { createRegistries } from '../resources/registries/service.ts';
import { createSecrets } from '../resources/secrets/service.ts';
import { createSessions } from '../resources/sessions/service.ts';
import { createSignIn } from '../resources/sign-in/service.ts';
import { createSnapshots } from '../resources/snapshots/service.ts';
import { createSubnets } from '../resources/subnets/service.ts';
import { createTaskViews } from '../resources/tasks/service.ts';
import { createThresholds } from '../resources/thresholds/service.ts';
import { createTokenManagement } from '../resources/tokens/management/service.ts';
import { createTokens } from '../resources/tokens/service.ts';
import { createUserActions } from '../resources/user-actions/service.ts';
import { createVolumes } from '../resources/volumes/service.ts';
import { createWebhooks } from '../resources/webhooks/service.ts';
import { createBacklog } from '../tasks/backlog.ts';
import { createHostSpace } from '../tasks/host-space.ts';
import { countJobs } from '../tasks/jobs.ts';
import { createTasks } from '../tasks/tasks.ts';
import { createWakeups } from '../tasks/wakeups.ts';
import type { Configuration } from './configuration.ts';

/** Here, because loading this module defines all writes. */
export { installWrites } from '../platform/deferred-writes.ts';

/** The triggers of the audit log and of events. Their caller holds the lock of migrations. */
export async function installTriggers(client: pg.Client): Promise<void> {
  await installAuditTriggers(client);
  await installEventTriggers(client, eventSources);
}

export type Services = Awaited<ReturnType<typeof createServices>>;

/** Settings that are absent have their defaults. */
export interface ServicesDeps extends Partial<CoreSettings> {
  db: Db;
  clock: Clock;
  /** The same clock, in development mode, where clients can move it. */
  movableClock?: MovableClock | null;
  log: Logger;
  configuration: Configuration;
  /** Encrypts secrets. */
  keyring: Keyring;
  /** Whether webhooks may go to addresses outside the public internet; default false. */
  webhookAllowPrivate?: boolean;
  /** What members of load balancers must not reach; absent: only what the regions file denies. */
  controlPlane?: Pick<MemberRulesOptions, 'controlPlane' | 'ownPorts'>;
  /** Checks regular expressions of L7 rules; default: with the HAProxy of this host. */
  checkPattern?: CheckPattern;
  /** Networks that this host delivers to itself; default: read from the kernel. */
  localNetworks?: () => readonly string[];
}

/**
 * Constructs all services, and records the regions of the configuration in the database. Stop `caches` at the end.
 */
export async function createServices(given: ServicesDeps) {
  const deps = { ...defaultSettings, ...given };
  const { db, clock, keyring, configuration, log } = deps;
  const { engines, shared } = await createEngines(deps);
  const { metrics, idempotency, quota, regions } = engines;

  const networks = createNetworks(shared);
  const subnets = createSubnets({ ...shared, networks });
  const secrets = createSecrets({ ...shared, keyring, usedBy: [usesOfSecret] });
  const tokens = createTokens(shared);
  const hostClock = deps.movableClock ? systemClock : clock;
  const sessions = createSessions({
    ...{ ...shared, hostClock, idleSeconds: deps.sessionIdleSeconds },
    isDevelopment: Boolean(deps.movableClock),
  });
  const registries = createRegistries({ ...shared, hostClock, keyring, tokens, publicUrl: deps.publicUrl });
  const verifyLogin = createVerifyLogin({ networks: deps.verifyNetworks, isOwn: registries.isOwn });
  const pullSecrets = createPullSecrets({ ...shared, keyring, verifyLogin });
  const listener = createListener({ db, log });
  const apiKeys = createApiKeys({ ...shared, keyCache: createKeyCache({ ...shared, listener }) });
  const usedBy = resources.flatMap(({ usesOfProject }) => usesOfProject ?? []);
  const projects = createProjects({ ...shared, usedBy });
  const clients = createClients({ ...shared, projects, networks });
  const signIn = deps.oidc
    ? createSignIn({
        ...{ ...shared, hostClock, keyring, log, tokens, clients, projects },
        ...{ settings: deps.oidc, publicUrl: deps.publicUrl! },
      })
    : null;
  const notifications = createNotifications({ ...shared, clients });
  const webhooks = createWebhooks({ ...shared, keyring, clients, refuseUrl: refuseUrl(deps.webhookAllowPrivate) });
  const taskViews = createTaskViews(shared);
  const fileShares = createFileShares({ ...shared, networks });

  const changes = createLoadBalancerChanges(shared);
  const memberRules = createRulesOfMembers(deps);
  const balanced = { ...shared, changes, secrets, memberRules };
  const pools = createPools({ ...balanced, untilEnd: taskViews.untilEnd });
  const listeners = createListeners({ ...balanced, pools });
  const l7Policies = createL7Policies({ ...shared, changes, checkPattern: deps.checkPattern ?? createPatternCheck() });
  const loadBalancers = createLoadBalancers({ ...shared, networks, changes, listeners, memberRules });

  const snapshots = createSnapshots(shared);
  const volumes = createVolumes({
    ...shared,
    snapshots,
    policies: {
      newVolumeErrors: (...args) => lifecyclePolicies.newVolumeErrors(...args),
      joinNewVolume: (...args) => lifecyclePolicies.joinNewVolume(...args),
    },
  });
  const pricing = createPricing(configuration.bookOfRegion, log, { regions, volumes, snapshots });
  const lifecyclePolicies = createLifecyclePolicies({ ...shared, pricing });
  const lifecyclePolicyRuns = createLifecyclePolicyRuns(shared);
  metrics.watchQueue(() => countJobs(db));
  metrics.watchHosts(() => listHosts(db, null, null));
  const missedRuns = createMissedRuns({ db, clock, notifications, lateSeconds: deps.scheduleLateSeconds });
  metrics.watchSchedules(() => lifecyclePolicyRuns.lateness(regions.all().map(({ id }) => id)), missedRuns.countLate);
  const scheduled = { policies: lifecyclePolicies, snapshots, runs: lifecyclePolicyRuns };

  const services = {
    ...{ db, clock, log, ...engines, memberRules, findKeyProblem: keyring.findProblem },
    ...{ networks, subnets, secrets, projects, clients, tokens, sessions, signIn, registries, fileShares, taskViews },
    ...{ loadBalancers, listeners, pools, l7Policies },
    ...{ snapshots, volumes, pricing, lifecyclePolicies, lifecyclePolicyRuns, missedRuns },
    lifecyclePolicySchedules: createLifecyclePolicySchedules(shared),
    requestedRuns: createRequestedRuns(shared),
    ...{ notifications, webhooks, apiKeys, pullSecrets },
    tokenManagement: createTokenManagement({ ...shared, tokens, clients, projects }),
    clientQuotas: createClientQuotas({ ...shared, clients }),
    quotaRequests: createQuotaRequests({ ...shared, notifications }),
    thresholds: createThresholds({ ...shared, clients, notifications }),
    hosts: createHosts(shared),
    auditLog: createAuditLog(shared),
    events: createEvents({ listener, log, sources: eventSources, clientOfProject: projects.clientOf, metrics }),
    userActions: createUserActions({ ...shared, keyring, refuseUrl: refuseUrl(deps.webhookAllowPrivate) }),
    quotaAudit: createQuotaAudit(
      db,
      quota,
      resources.flatMap(({ usageOfRows }) => usageOfRows ?? []),
    ),
    development: deps.movableClock
      ? createDevelopment({ db, idempotency, clock: deps.movableClock, ...scheduled })
      : null,
  };
  return {
    ...services,
    reencrypt: () =>
      reencryptEverything(services, [
        () => idempotency.reencrypt(db),
        () => reencryptAcme(db, keyring),
        () => reencryptPublished(db, keyring),
      ]),
  };
}

/** Everything below the resources. `shared` is what the service of a resource needs. */
async function createEngines(deps: ServicesDeps & CoreSettings) {
  const { db, clock, configuration, keyring, clientLimits, maxBacklog: maxJobs } = deps;
  const metrics = createMetrics();
  const caches = createReferenceCaches(db);
  const audit = createAudit({ clock, keepDays: deps.auditDays });
  const idempotency = createIdempotency(clock, keyring, audit);
  const quota = createQuota(configuration.defaultLimits, deps.notificationWindowSeconds);
  const backlog = createBacklog({ db, limit: clientLimits.tasks, maxJobs, onRefusal: metrics.countRefusal });
  const wakeups = createWakeups(db);
  const tasks = createTasks({ clock, backlog, hostSpace: createHostSpace(db), wakeups });
  tasks.onEnd(metrics.observeTask);
  const regions = await loadRegions(db, clock, configuration.regions);
  const engines = { metrics, caches, audit, idempotency, quota, tasks, wakeups, regions };
  return { engines, shared: { db, clock, tasks, quota, audit, idempotency, regions, caches } };
}

function createRulesOfMembers({ configuration, controlPlane, localNetworks = recentLocalNetworks }: ServicesDeps) {
  const hosted = configuration.regions.flatMap(({ hosts }) => hosts ?? []);
  const serviceAddresses = hosted.flatMap(
    ({ api_address: api, registry_address: registry, nfs_addresses: nfs = [] }) => [
      ...nfs,
      ...[api, registry].filter((address) => address !== undefined),
    ],
  );
  return createMemberRules({
    regions: memberNetworksOf(configuration.regions, [{ daemon: 'sessions of load balancers', port: PEER_PORT }]),
    vipRanges: configuration.regions.flatMap(({ vip_range, vip_range_v6 }) =>
      [vip_range ?? [], vip_range_v6 ?? []].flat(),
    ),
    controlPlane: () => [...(controlPlane?.controlPlane() ?? []), ...serviceAddresses],
    ownPorts: controlPlane?.ownPorts ?? (() => []),
    localNetworks,
  });
}

/** Returns why a webhook must not have a URL, or null. */
function refuseUrl(allowPrivate = false) {
  return async (url: string) => errorOfUrl(url) ?? (allowPrivate ? null : refusalOfUrl(url));
}

/**
 * Encrypts everything with the current key. Returns how much another key had encrypted.
 * @throws EncryptionError of the first resource that has a ciphertext which does not decrypt, after all others are done
 */
async function reencryptEverything(services: ReencryptionServices, others: (() => Promise<number>)[]): Promise<number> {
  const all = resources.flatMap(({ reencrypt }) => (reencrypt ? () => reencrypt(services as never) : []));
  let sum = 0;
  const failures: unknown[] = [];
  for (const reencrypt of [...all, ...others]) {
    await reencrypt().then(
      (count) => (sum += count),
      (error: unknown) => failures.push(error),
    );
  }
  if (failures.length > 0) throw failures[0];
  return sum;
}
