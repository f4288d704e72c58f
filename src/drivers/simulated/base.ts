/** What all simulated drivers share. They keep state in memory only: after a restart nothing is there, and `apply` creates it again. */
import type { DriverStatus } from '../driver.ts';
import type { Simulation } from '../kind.ts';

export interface SimulatedBase {
  name: 'simulated';
  real: false;
  status(): DriverStatus;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** `what`: what is simulated, and what users cannot do with it. */
export function simulatedBase(
  what: string,
  { detail, remedy = 'npm run cloudyard -- doctor' }: Simulation,
): SimulatedBase {
  return {
    name: 'simulated',
    real: false,
    status: () => ({
      driver: 'simulated',
      real: false,
      healthy: true,
      detail: detail ? `${what}; ${detail}` : what,
      remedy,
    }),
    start: async () => undefined,
    stop: async () => undefined,
  };
}
