/** Every resource: one line each. The index.ts of a resource has its registration. */
import type { Routes } from '../http/app.ts';
import { apiKeys } from './api-keys/index.ts';
import { audit } from './audit/index.ts';
import { clients } from './clients/index.ts';
import { development } from './development/index.ts';
import { events } from './events/index.ts';
import { fileShares } from './file-shares/index.ts';
import { hosts } from './hosts/index.ts';
import { lifecyclePolicies } from './lifecycle-policies/index.ts';
import { loadBalancers } from './load-balancers/index.ts';
import { networks } from './networks/index.ts';
import { notifications } from './notifications/index.ts';
import { pricing } from './pricing/index.ts';
import { projects } from './projects/index.ts';
import { pullSecrets } from './pull-secrets/index.ts';
import { quotaRequests } from './quota-requests/index.ts';
import { quotas } from './quotas/index.ts';
import { regions } from './regions/index.ts';
import { registries } from './registries/index.ts';
import { secrets } from './secrets/index.ts';
import { sessions } from './sessions/index.ts';
import { signIn } from './sign-in/index.ts';
import { snapshots } from './snapshots/index.ts';
import { subnets } from './subnets/index.ts';
import { tasks } from './tasks/index.ts';
import { thresholds } from './thresholds/index.ts';
import { tokens } from './tokens/index.ts';
import { userActions } from './user-actions/index.ts';
import { volumes } from './volumes/index.ts';
import { webhooks } from './webhooks/index.ts';
import type { Names, ParametersOf, Resource } from './resource.ts';

const list = [
  sessions,
  signIn,
  tokens,
  tasks,
  projects,
  regions,
  hosts,
  networks,
  subnets,
  secrets,
  fileShares,
  loadBalancers,
  volumes,
  snapshots,
  lifecyclePolicies,
  registries,
  pricing,
  quotas,
  quotaRequests,
  apiKeys,
  pullSecrets,
  thresholds,
  clients,
  notifications,
  webhooks,
  audit,
  events,
  userActions,
  development,
];

export const resources: readonly Resource[] = list;

export const eventSources = resources.flatMap(({ events }) => events);

const names: Names = {
  faults: resources.flatMap(({ faults }) => faults ?? []).sort(),
  events: [...new Set(eventSources.map(({ kind }) => kind))].sort(),
};

type Listed = (typeof list)[number];

/** The services that operations need. */
export type ResourceServices = ParametersOf<Listed, 'operations'>;
/** The services and options that reconcilers and duties need. */
export type WorkServices = ParametersOf<Listed, 'reconciler'> & ParametersOf<Listed, 'duties'>;
export type ReencryptionServices = ParametersOf<Listed, 'reencrypt'>;
/** The drivers that resources need. */
export type ResourceDrivers = ParametersOf<Listed, 'driver'>;

export const resourceRoutes = (services: ResourceServices): Routes[] =>
  resources.flatMap(({ operations }) => operations(services as never, names));
