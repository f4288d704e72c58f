/** Registries that only pretend: they can be managed, and nobody listens at their address. */
import { refuseAborted } from '../command.ts';
import type { RegistryDriver } from '../registry.ts';

const DETAIL = 'registries are simulated: they can be managed but nothing can be pushed';

/** `detail` and `remedy` say why it only pretends, where that is known (`findDistribution`). */
export function createSimulatedRegistryDriver({
  address = '127.0.0.1:5000',
  detail,
  remedy = 'apt-get install docker-registry',
}: {
  address?: string;
  detail?: string;
  remedy?: string;
} = {}): RegistryDriver {
  return {
    name: 'simulated',
    real: false,
    address,
    status: () => ({
      driver: 'simulated',
      real: false,
      healthy: true,
      detail: detail ? `${DETAIL}; ${detail}` : DETAIL,
      remedy,
    }),
    start: async () => undefined,
    stop: async () => undefined,
    configure: async () => undefined,
    removeContents: async (_removal, signal) => refuseAborted(signal),
    remove: async (_prefix, signal) => refuseAborted(signal),
    list: async () => [],
    quarantine: async () => undefined,
    idleUploads: async () => new Map(),
    collect: async () => null,
  };
}
