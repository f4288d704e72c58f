/**
 * Repairs the repository of a request to which distribution responded with an error of the storage.
 *
 * Clients can cause such errors at will, and a scan of 50,000 links takes a processor for more than a second. So requests share
 * the scan of a repository, and a scan that has repaired nothing is followed by a pause.
 */
import type { Layout } from '../layout.ts';
import { type Repair, repairManifest, repairRepository } from '../repair.ts';
import type { Target } from './target.ts';

export type Repairs = ReturnType<typeof createRepairs>;

/** The length of the pause, in durations of the scan. */
const pause = 9;

/**
 * Returns the repair for a request. For requests without a repository, nothing is repaired. A failed repair is logged, and the client
 * gets the response of distribution.
 */
export function createRepairs(layout: Layout) {
  /** Of scans that run, and of those that are in their pause, by name of the repository. */
  const scans = new Map<string, Promise<Repair>>();

  const scan = (name: string, folder: string): Promise<Repair> => {
    const known = scans.get(name);
    if (known) return known;
    const began = performance.now();
    const started = logged(() => repairRepository(layout, { name, folder }));
    scans.set(name, started);
    void started.then((found) => {
      const pauseMs = found === 'sound' ? pause * (performance.now() - began) : 0;
      setTimeout(() => scans.delete(name), pauseMs).unref();
    });
    return started;
  };

  return ({ kind, name, prefix, repository, reference }: Target) =>
    async (): Promise<Repair> => {
      if (repository === '') return 'sound';
      const folder = layout.repository(prefix, repository);
      if (kind === 'manifest') {
        const found = await logged(() => repairManifest(layout, { name: repository, folder }, reference));
        if (found !== 'sound') return found;
      }
      return scan(name, folder);
    };
}

async function logged(repair: () => Promise<Repair>): Promise<Repair> {
  try {
    return await repair();
  } catch (error) {
    console.error(error);
    return 'sound';
  }
}
