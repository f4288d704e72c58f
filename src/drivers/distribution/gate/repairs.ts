/** Repairs the repository of a request that distribution answered with a server error. */
import type { Layout } from '../layout.ts';
import { repairRepository } from '../repair.ts';
import type { Forwarding } from './forward.ts';
import type { Target } from './target.ts';

/** For requests without a repository, nothing is repaired. */
export function repairFor(layout: Layout, target: Target): NonNullable<Forwarding['repair']> {
  const { kind, prefix, repository, reference } = target;
  return async () => {
    if (repository === '') return 'sound';
    const folder = layout.repository(prefix, repository);
    return repairRepository(layout, { name: repository, folder }, kind === 'manifest' ? reference : null);
  };
}
