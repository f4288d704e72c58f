/** Detects whether this host can serve images, before anything is started. */
import { findProgram } from '../programs.ts';

export interface DistributionFinding {
  /** The program; null if it is not installed, so that only the simulated driver can run. */
  distribution: string | null;
  detail: string;
  remedy?: string;
}

export function findDistribution(): DistributionFinding {
  const distribution = findProgram('docker-registry');
  if (distribution) return { distribution, detail: 'images by CNCF distribution' };
  return {
    distribution: null,
    detail: 'CNCF distribution is not installed',
    remedy: 'apt-get install docker-registry && npm start',
  };
}
