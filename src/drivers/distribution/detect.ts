/** Detects whether this host can serve images, before anything is started. Pure except for `program`. */
import { findProgram } from '../programs.ts';

export interface DistributionFinding {
  /** The program; null if it is not installed, so that only the simulated driver can run. */
  distribution: string | null;
  detail: string;
  remedy?: string;
}

/** `program` finds a program in PATH; null: not installed. */
export function findDistribution(program: (name: string) => string | null = findProgram): DistributionFinding {
  const distribution = program('docker-registry');
  if (distribution) return { distribution, detail: 'images by CNCF distribution' };
  return {
    distribution: null,
    detail: 'CNCF distribution is not installed',
    remedy: 'apt-get install docker-registry',
  };
}
