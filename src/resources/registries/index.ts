import { projectReader } from '../../authz/access.ts';
import type { RegistryDriver } from '../../drivers/registry.ts';
import { driverBacked, type DutyOptions, type Resource } from '../resource.ts';
import type { ReconcilerDeps } from '../reconcile-kit.ts';
import { createRegistryDuties, createRegistryReconciler } from './reconcile.ts';
import { registryRoutes } from './routes.ts';
import type { Registries } from './service.ts';
import { usageOfRows, usesOfProject } from './store.ts';

type DutyServices = ReconcilerDeps &
  DutyOptions & { registries: Registries; driverSettings: { registry: { patience: number } } };

const registry = { kind: 'registry', access: projectReader };
const ownerBy = (id: string) => ({ table: 'registries', id });
const ofRepository =
  '(select repository.registry_id from public.registry_repositories repository where repository.id = c.repository_id)';

export const registries = {
  operations: registryRoutes,
  usageOfRows,
  usesOfProject,
  reencrypt: (services: { registries: Registries }) => services.registries.reencrypt(),
  // No faults: a client's request changes rows only. The driver only removes, and retries until it is done.
  ...driverBacked({
    driver: (drivers: { registry: RegistryDriver }) => drivers.registry,
    reconciler: (services: ReconcilerDeps, driver) => createRegistryReconciler({ ...services, driver }),
    duties: ({ registries: service, driverSettings, ...services }: DutyServices, driver) =>
      createRegistryDuties({
        ...services,
        driver,
        hosting: () => service.hosting(services.regionIds),
        patience: driverSettings.registry.patience,
      }),
  }),
  events: [
    {
      ...registry,
      table: 'registries',
      columns: ['name', 'storage_limit', 'storage_used', 'deleted_at'],
      softDelete: true,
    },
    { ...registry, table: 'registry_users', owner: ownerBy('c.registry_id') },
    {
      ...registry,
      table: 'registry_repositories',
      columns: ['name', 'pull_count', 'updated_at'],
      owner: ownerBy('c.registry_id'),
    },
    {
      ...registry,
      table: 'registry_artifacts',
      columns: ['size', 'pushed_at', 'pulled_at'],
      owner: ownerBy(ofRepository),
    },
    {
      ...registry,
      table: 'registry_tags',
      columns: ['artifact_id', 'pushed_at', 'pulled_at'],
      owner: ownerBy(ofRepository),
    },
  ],
} satisfies Resource;
