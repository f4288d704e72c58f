/** Simulated registries: they can be managed, but nothing listens at their address. */
import { refuseAborted } from '../command.ts';
import type { Simulation } from '../kind.ts';
import type { RegistryDriver } from '../registry.ts';
import { simulatedLifecycle } from './lifecycle.ts';

/** `address`: `host:port`, as in the `url` of registries. */
export function createSimulatedRegistryDriver({
  address = '127.0.0.1:5000',
  ...why
}: { address?: string } & Simulation = {}): RegistryDriver {
  return {
    address,
    ...simulatedLifecycle('simulated: registries can be managed but not pushed to', why),
    configure: async () => undefined,
    removeContents: async (_removal, signal) => refuseAborted(signal),
    remove: async (_prefix, signal) => refuseAborted(signal),
    list: async () => [],
    quarantine: async () => undefined,
    idleUploads: async () => new Map(),
    collect: async () => null,
  };
}
