/** Simulated file shares: the results of a real driver, without touching the host. They grow and never shrink. */
import { refuseAborted } from '../command.ts';
import type { FileShareDriver } from '../file-share.ts';
import { connectionPoint } from '../ganesha/configuration.ts';
import type { Simulation } from '../kind.ts';
import { simulatedLifecycle, simulatedRemovals } from './lifecycle.ts';

/** `host`: as in `connection_point`. */
export function createSimulatedFileShareDriver({ host, ...why }: { host: string } & Simulation): FileShareDriver {
  const shares = new Map<string, number>();
  return {
    ...simulatedRemovals(shares),
    ...simulatedLifecycle('simulated: shares can be managed but not mounted', why),
    async apply({ id, sizeGib: wanted }, signal) {
      refuseAborted(signal);
      const sizeGib = Math.max(wanted, shares.get(id) ?? 0);
      shares.set(id, sizeGib);
      return { connectionPoint: connectionPoint(host, id), sizeGib };
    },
    usage: async () => new Map(),
  };
}
