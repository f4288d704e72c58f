/** Every resource that clients can reach: one line each. */
import type { Routes } from '../http/app.ts';
import { routesOf } from '../http/operations.ts';
import { apiKeyRoutes, authorizeRoutes } from './api-keys/routes.ts';
import type { ApiKeys } from './api-keys/service.ts';
import { auditRoutes } from './audit/routes.ts';
import type { AuditLog } from './audit/service.ts';
import { clientRoutes } from './clients/routes.ts';
import type { Clients } from './clients/service.ts';
import { developmentRoutes } from './development/routes.ts';
import type { Development } from './development/service.ts';
import { fileShareOperations } from './file-shares/routes.ts';
import type { FileShares } from './file-shares/service.ts';
import { lbPoolMemberRoutes } from './load-balancers/members/routes.ts';
import { lbPoolRoutes } from './load-balancers/pools/routes.ts';
import type { LbPools } from './load-balancers/pools/service.ts';
import { lifecyclePolicyOperations } from './lifecycle-policies/routes.ts';
import type { LifecyclePolicyRuns } from './lifecycle-policies/runs/service.ts';
import type { LifecyclePolicies } from './lifecycle-policies/service.ts';
import { listenerRoutes } from './load-balancers/listeners/routes.ts';
import type { Listeners } from './load-balancers/listeners/service.ts';
import { loadBalancerRoutes } from './load-balancers/routes.ts';
import type { LoadBalancers } from './load-balancers/service.ts';
import { networkRoutes } from './networks/routes.ts';
import type { Networks } from './networks/service.ts';
import { notificationRoutes } from './notifications/routes.ts';
import type { Notifications } from './notifications/service.ts';
import { pricingOperations } from './pricing/routes.ts';
import type { Pricing } from './pricing/service.ts';
import { projectRoutes } from './projects/routes.ts';
import type { Projects } from './projects/service.ts';
import { quotaRoutes } from './quotas/routes.ts';
import type { ClientQuotas } from './quotas/service.ts';
import { pullSecretRoutes } from './pull-secrets/routes.ts';
import type { PullSecrets } from './pull-secrets/service.ts';
import { regionRoutes } from './regions/routes.ts';
import type { Regions } from './regions/service.ts';
import { registryRoutes } from './registries/routes.ts';
import type { Registries } from './registries/service.ts';
import { secretRoutes } from './secrets/routes.ts';
import type { Secrets } from './secrets/service.ts';
import { snapshotOperations } from './snapshots/routes.ts';
import type { Snapshots } from './snapshots/service.ts';
import { subnetRoutes } from './subnets/routes.ts';
import type { Subnets } from './subnets/service.ts';
import { taskRoutes } from './tasks/routes.ts';
import type { TaskViews } from './tasks/service.ts';
import { thresholdRoutes } from './thresholds/routes.ts';
import type { Thresholds } from './thresholds/service.ts';
import { volumeOperations } from './volumes/routes.ts';
import type { Volumes } from './volumes/service.ts';
import { webhookRoutes } from './webhooks/routes.ts';
import type { Webhooks } from './webhooks/service.ts';

export interface ResourceServices {
  taskViews: TaskViews;
  projects: Projects;
  regions: Regions;
  networks: Networks;
  subnets: Subnets;
  secrets: Secrets;
  fileShares: FileShares;
  loadBalancers: LoadBalancers;
  listeners: Listeners;
  lbPools: LbPools;
  volumes: Volumes;
  snapshots: Snapshots;
  lifecyclePolicies: LifecyclePolicies;
  lifecyclePolicyRuns: LifecyclePolicyRuns;
  registries: Registries;
  pricing: Pricing;
  clientQuotas: ClientQuotas;
  apiKeys: ApiKeys;
  pullSecrets: PullSecrets;
  thresholds: Thresholds;
  clients: Clients;
  notifications: Notifications;
  webhooks: Webhooks;
  auditLog: AuditLog;
  /** Null: not in development mode. */
  development: Development | null;
}

export const resourceRoutes = (services: ResourceServices): Routes[] => [
  taskRoutes(services.taskViews),
  projectRoutes(services.projects),
  regionRoutes(services.regions),
  networkRoutes(services.networks),
  subnetRoutes(services.subnets),
  secretRoutes(services.secrets),
  routesOf(fileShareOperations(services.fileShares)),
  loadBalancerRoutes(services.loadBalancers),
  listenerRoutes(services.listeners),
  lbPoolRoutes(services.lbPools),
  lbPoolMemberRoutes(services.lbPools),
  routesOf(volumeOperations(services.volumes)),
  routesOf(snapshotOperations(services.snapshots)),
  routesOf(lifecyclePolicyOperations(services.lifecyclePolicies, services.lifecyclePolicyRuns)),
  registryRoutes(services.registries),
  routesOf(pricingOperations(services.pricing)),
  quotaRoutes(services.clientQuotas),
  apiKeyRoutes(services.apiKeys),
  authorizeRoutes(services.apiKeys),
  pullSecretRoutes(services.pullSecrets),
  thresholdRoutes(services.thresholds),
  clientRoutes(services.clients),
  notificationRoutes(services.notifications),
  webhookRoutes(services.webhooks),
  auditRoutes(services.auditLog),
  ...(services.development ? [developmentRoutes(services.development)] : []),
];
