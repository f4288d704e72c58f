/** Repairs the repository of a request to which distribution responded with an error of the storage. */
import type { Layout } from '../layout.ts';
import { repairRepository } from '../repair.ts';
import type { Forwarding } from './forward.ts';
import type { Target } from './target.ts';

/** For requests without a repository, nothing is repaired. A failed repair is logged; the client gets the response of distribution. */
export function repairFor(layout: Layout, target: Target): NonNullable<Forwarding['repair']> {
  const { kind, prefix, repository, reference } = target;
  return async () => {
    if (repository === '') return 'sound';
    const folder = layout.repository(prefix, repository);
    try {
      return await repairRepository(layout, { name: repository, folder }, kind === 'manifest' ? reference : null);
    } catch (error) {
      console.error(error);
      return 'sound';
    }
  };
}
