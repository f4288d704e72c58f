/** Starts the longest test files first, so that none of them runs alone at the end. */
import { relative } from 'node:path';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/** In order of duration. A file that is missing here starts later than it should, and nothing else. */
const longest = [
  'test/e2e/kill.test.ts',
  'test/e2e/notifications.test.ts',
  'test/e2e/shared-database.test.ts',
  'test/e2e/commands.test.ts',
  'test/e2e/load-balancer-kills.test.ts',
  'test/e2e/quota-storm.test.ts',
  'test/e2e/registries.test.ts',
  'test/e2e/lifecycle-policies.test.ts',
  'test/e2e/operating.test.ts',
  'test/security/balancer-isolation.test.ts',
  'test/security/request-cost.test.ts',
  'test/security/slow-clients.test.ts',
  'test/security/fairness.test.ts',
  'test/e2e/pull-secrets.test.ts',
  'test/security/registry-uploads.test.ts',
  'src/tasks/worker.test.ts',
  'src/platform/embedded-postgres.test.ts',
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification) => {
      const place = longest.indexOf(relative(this.ctx.config.root, moduleId));
      if (place >= 0) return place;
      return project.name === 'fast' ? longest.length + 1 : longest.length;
    };
    // Stable: within a rank, the order of BaseSequencer, which is by duration where it is known and by size otherwise.
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
