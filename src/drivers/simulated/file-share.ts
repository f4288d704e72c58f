/** Simulated file shares: the results of a real driver, without touching the host. They grow and never shrink. */
import { isDeepStrictEqual } from 'node:util';
import { refuseAborted } from '../command.ts';
import type { DesiredFileShare, FileShareDriver } from '../file-share.ts';
import { connectionPoint } from '../ganesha/configuration.ts';
import type { Simulation } from '../kind.ts';
import { simulatedLifecycle, simulatedRemovals } from './lifecycle.ts';

/** `host`: as in `connection_point`. */
export function createSimulatedFileShareDriver({ host, ...why }: { host: string } & Simulation): FileShareDriver {
  const shares = new Map<string, DesiredFileShare>();
  return {
    ...simulatedRemovals(shares),
    ...simulatedLifecycle('simulated: shares can be managed but not mounted', why),
    async apply(desired, signal) {
      refuseAborted(signal);
      const before = shares.get(desired.id);
      const sizeGib = Math.max(desired.sizeGib, before?.sizeGib ?? 0);
      const after = structuredClone({ ...desired, sizeGib, settledGib: null });
      shares.set(desired.id, after);
      const changed = !before ? ['created'] : isDeepStrictEqual(before, after) ? [] : ['changed'];
      return { connectionPoint: connectionPoint(host, desired.id), sizeGib, changed };
    },
    usage: async () => new Map(),
  };
}
