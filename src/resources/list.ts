/** Every resource: one line each. What a resource registers is in its index.ts. */
import type { Routes } from '../http/app.ts';
import { routesOf } from '../http/operations.ts';
import type { Operation } from '../http/operations.ts';
import { apiKeys } from './api-keys/index.ts';
import { audit } from './audit/index.ts';
import { clients } from './clients/index.ts';
import { development } from './development/index.ts';
import { fileShares } from './file-shares/index.ts';
import { lifecyclePolicies } from './lifecycle-policies/index.ts';
import { loadBalancers } from './load-balancers/index.ts';
import { networks } from './networks/index.ts';
import { notifications } from './notifications/index.ts';
import { pricing } from './pricing/index.ts';
import { projects } from './projects/index.ts';
import { pullSecrets } from './pull-secrets/index.ts';
import { quotas } from './quotas/index.ts';
import { regions } from './regions/index.ts';
import { registries } from './registries/index.ts';
import { secrets } from './secrets/index.ts';
import { snapshots } from './snapshots/index.ts';
import { subnets } from './subnets/index.ts';
import { tasks } from './tasks/index.ts';
import { thresholds } from './thresholds/index.ts';
import { volumes } from './volumes/index.ts';
import { webhooks } from './webhooks/index.ts';
import type { Resource } from './resource.ts';

const list = [
  tasks,
  projects,
  regions,
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
  apiKeys,
  pullSecrets,
  thresholds,
  clients,
  notifications,
  webhooks,
  audit,
  development,
];

export const resources: readonly Resource[] = list;

/** The names by which faults of development mode refer to resources. */
export const faultNames = resources.flatMap(({ faults }) => faults ?? []).sort();

type Listed = (typeof list)[number];
/** The functions of this name that resources register. */
type Registered<Name extends keyof Resource> = Listed extends infer Each
  ? Name extends keyof Each
    ? Each[Name]
    : never
  : never;
/** The first parameters of these functions, all together. */
type Needs<Each> = (
  Each extends (services: infer Services, ...rest: never[]) => unknown
    ? (services: Services) => void
    : never
) extends (services: infer Together) => void
  ? Together
  : never;

/** The services that operations need. */
export type ResourceServices = Needs<Registered<'operations'>>;
/** The services and options that reconcilers and duties need. */
export type WorkServices = Needs<Registered<'reconciler'>> & Needs<Registered<'duties'>>;
export type ReencryptionServices = Needs<Registered<'reencrypt'>>;
/** The drivers that resources need. */
export type ResourceDrivers = Needs<Registered<'driver'>>;

export const resourceRoutes = (services: ResourceServices): Routes[] =>
  resources
    .flatMap(({ operations }): (Routes | Operation)[] | Routes => operations(services as never, faultNames))
    .map((each) => (typeof each === 'function' ? each : routesOf([each])));
