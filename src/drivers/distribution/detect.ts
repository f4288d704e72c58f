/** Whether this host can serve images, decided before anything is started. Pure over `program`. */
import { findProgram } from '../programs.ts';

export interface DistributionFinding {
  /** Null when only the simulated driver can stand in. */
  distribution: string | null;
  detail: string;
  remedy?: string;
}

export function findDistribution(program: (name: string) => string | null = findProgram): DistributionFinding {
  const distribution = program('docker-registry');
  if (distribution) return { distribution, detail: 'images by CNCF distribution' };
  return {
    distribution: null,
    detail: 'CNCF distribution is not installed',
    remedy: 'apt-get install docker-registry',
  };
}
