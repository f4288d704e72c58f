/** What simulated drivers share. They keep their state in memory: after a restart it is empty, and `apply` creates it again. */
import type { DriverStatus } from '../../platform/driver-status.ts';
import { refuseAborted } from '../command.ts';
import type { Simulation } from '../kind.ts';

/** `consequence`: the limits of the simulation, for the status. `detail`: why the driver is simulated. */
export function simulatedLifecycle(
  consequence: string,
  { detail, remedy = 'npm run cloudyard -- doctor' }: Simulation,
) {
  return {
    name: 'simulated',
    real: false as const,
    status: () => simulatedStatus(detail ? `${consequence}; ${detail}` : consequence, remedy),
    start: async () => undefined,
    stop: async () => undefined,
  };
}

/** Lists and removes what a driver keeps, by id. */
export function simulatedRemovals(kept: Pick<Map<string, unknown>, 'delete'> & { keys(): Iterable<string> }) {
  return {
    real: false as const,
    list: async () => [...kept.keys()].sort(),
    async remove(id: string, signal: AbortSignal) {
      refuseAborted(signal);
      kept.delete(id);
    },
    async quarantine(id: string) {
      kept.delete(id);
    },
  };
}

/** Healthy, because simulation is what the operator or `auto` chose. `remedy`: the command that makes it real. */
export function simulatedStatus(detail: string, remedy?: string): DriverStatus {
  return { driver: 'simulated', real: false, healthy: true, detail, remedy };
}
