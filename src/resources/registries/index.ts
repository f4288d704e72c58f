import type { RegistryDriver } from '../../drivers/registry.ts';
import { driverBacked } from '../resource.ts';
import type { ReconcilerDeps } from '../reconcile-kit.ts';
import type { DutyOptions, Resource } from '../resource.ts';
import { createRegistryDuties, createRegistryReconciler } from './reconcile.ts';
import { registryRoutes } from './routes.ts';
import type { Registries } from './service.ts';
import { usageOfRows, usesOfProject } from './store.ts';

type DutyServices = ReconcilerDeps &
  DutyOptions & { registries: Registries; driverSettings: { registry: { patience: number } } };

export const registries = {
  operations: (services: { registries: Registries }) => registryRoutes(services.registries),
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
} satisfies Resource;
