/**
 * The name, status, start and stop of simulated drivers. They keep their state in memory: after a restart it is empty, and
 * `apply` creates it again.
 */
import type { DriverStatus } from '../driver.ts';
import type { Simulation } from '../kind.ts';

interface SimulatedLifecycle {
  name: 'simulated';
  real: false;
  status(): DriverStatus;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** `consequence`: the limits of the simulation, for the status. `detail`: why the driver is simulated. */
export function simulatedLifecycle(
  consequence: string,
  { detail, remedy = 'npm run cloudyard -- doctor' }: Simulation,
): SimulatedLifecycle {
  return {
    name: 'simulated',
    real: false,
    status: () => simulatedStatus(detail ? `${consequence}; ${detail}` : consequence, remedy),
    start: async () => undefined,
    stop: async () => undefined,
  };
}

/** Healthy, because simulation is what the operator or `auto` chose. `remedy`: the command that makes it real. */
export function simulatedStatus(detail: string, remedy: string): DriverStatus {
  return { driver: 'simulated', real: false, healthy: true, detail, remedy };
}
