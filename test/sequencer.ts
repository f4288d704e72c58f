/** Starts the longest test files of each project first, so that none of them runs alone at the end. */
import { relative } from 'node:path';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/**
 * In order of duration within a project, but files with three hosts between others: their failovers have deadlines, and each
 * takes most of a core. A file that is missing here starts later than it should, and nothing else.
 */
const longest = [
  'test/security/request-cost.test.ts',
  'test/e2e/ceph.test.ts',
  'test/e2e/kill.test.ts',
  'test/security/largest-answers.test.ts',
  'test/e2e/user-actions.test.ts',
  'test/e2e/notifications.test.ts',
  'test/e2e/audit-export.test.ts',
  'test/e2e/commands.test.ts',
  'test/security/slow-clients.test.ts',
  'test/e2e/api-fuzzing.test.ts',
  'test/e2e/full-disk-start.test.ts',
  'test/e2e/l7-policies.test.ts',
  'test/e2e/load-balancer-updates.test.ts',
  'test/security/hostile-text.test.ts',
  'test/security/fairness.test.ts',
  'test/security/database-access.test.ts',
  'test/e2e/tokens.test.ts',
  'test/e2e/shared-database.test.ts',
  'test/e2e/registries.test.ts',
  'test/e2e/load-balancer-kills.test.ts',
  'test/e2e/quota-storm.test.ts',
  'test/e2e/stop-under-load.test.ts',
  'test/e2e/pull-secrets.test.ts',
  'test/e2e/operating.test.ts',
  'test/e2e/forward-auth.test.ts',
  'test/security/balancer-isolation.test.ts',
  'test/e2e/several-processes.test.ts',
  'test/e2e/lifecycle-policies.test.ts',
  'test/e2e/upgrade.test.ts',
  'test/e2e/load-balancers.test.ts',
  'test/e2e/volumes.test.ts',
  'test/security/registry-uploads.test.ts',
  'src/drivers/storage-faults.test.ts',
  'test/browser/pages.test.ts',
  'test/browser/load-balancers.test.ts',
  'test/browser/real-drivers.test.ts',
  'test/browser/lifecycle-policies.test.ts',
  'test/browser/volumes.test.ts',
  'test/browser/live.test.ts',
  'test/browser/keyboard.test.ts',
  'test/browser/notifications.test.ts',
  'test/several-hosts/shares-and-balancers.test.ts',
  'test/model/model.test.ts',
  'test/several-hosts/nfs-failover.test.ts',
  'test/linearizability/linearizability.test.ts',
  'test/several-hosts/region.test.ts',
  'src/drivers/ceph/ceph.test.ts',
  'src/platform/embedded-postgres.test.ts',
  'test/several-hosts/balancers.test.ts',
  'src/drivers/ganesha/ganesha.test.ts',
  'test/several-hosts/database.test.ts',
  'test/upgrades/rolling.test.ts',
  'src/drivers/haproxy/changes.test.ts',
  'src/drivers/haproxy/traffic.test.ts',
  'test/console/code-story.test.ts',
  'src/drivers/disk/disk.test.ts',
  'src/tasks/worker.test.ts',
  'src/backup/backup.test.ts',
  'src/tasks/change-faults.test.ts',
  'src/resources/lifecycle-policies/runs/crash.test.ts',
  'src/hosts/hosts.test.ts',
  'src/resources/development/development.test.ts',
  'src/resources/load-balancers/crash.test.ts',
  'src/main/migrations.test.ts',
  'src/tasks/bad-network.test.ts',
  'src/resources/lifecycle-policies/retention/retention.test.ts',
  'src/resources/file-shares/crash.test.ts',
  'src/resources/volumes/crash.test.ts',
  'src/tasks/database-faults.test.ts',
  'src/resources/webhooks/webhooks.test.ts',
  'src/resources/lifecycle-policies/runs/runs.test.ts',
  'src/audit/filter-index.test.ts',
  'src/tasks/broken-database.test.ts',
  'src/resources/volumes/locks.test.ts',
  'test/upgrades/upgrade.test.ts',
  'src/resources/volumes/quota-drift.test.ts',
  'src/resources/api-keys/api-keys.test.ts',
  'src/resources/thresholds/thresholds.test.ts',
  'src/resources/events/events.test.ts',
  'src/main/scheduled-backups.test.ts',
  'src/resources/lifecycle-policies/fire-times.test.ts',
  'src/resources/file-shares/quota-drift.test.ts',
  'src/resources/volumes/volumes.test.ts',
];

/** The files of a project follow each other: only then the next file without isolation gets a process that has the modules. */
const projects = ['system', 'isolated', 'browser', 'programs', 'fast'];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeIn = (list: string[], name: string) => (list.includes(name) ? list.indexOf(name) : list.length);
    const rank = ({ project, moduleId }: TestSpecification) =>
      placeIn(projects, project.name) * (longest.length + 1) +
      placeIn(longest, relative(this.ctx.config.root, moduleId));
    // Stable: within a rank, the order of BaseSequencer, which is by duration where it is known and by size otherwise.
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}
