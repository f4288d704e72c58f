/** Starts the longest test files of each project first, so that none of them runs alone at the end. */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * In order of duration within a project, but files with three hosts between others: their failovers have deadlines, and each
 * takes most of a core. A file that is missing here starts later than it should, and nothing else.
 */
const longest = [
  'test/e2e/ceph.test.ts',
  'test/e2e/kill.test.ts',
  'test/e2e/user-actions.test.ts',
  'test/e2e/notifications.test.ts',
  'test/e2e/api-fuzzing.test.ts',
  'test/security/slow-clients.test.ts',
  'test/e2e/audit-export.test.ts',
  'test/e2e/full-disk-start.test.ts',
  'test/e2e/registries.test.ts',
  'test/security/registry-uploads.test.ts',
  'test/security/registry-connections.test.ts',
  'test/security/balancer-isolation.test.ts',
  'test/e2e/commands.test.ts',
  'test/e2e/shared-database.test.ts',
  'test/security/database-access.test.ts',
  'test/e2e/operating.test.ts',
  'test/e2e/load-balancer-kills.test.ts',
  'test/e2e/tokens.test.ts',
  'test/security/request-smuggling.test.ts',
  'test/e2e/tls.test.ts',
  'test/security/largest-answers.test.ts',
  'test/security/request-cost.test.ts',
  'test/e2e/volumes.test.ts',
  'test/e2e/forward-auth.test.ts',
  'test/e2e/upgrade.test.ts',
  'test/e2e/stop-under-load.test.ts',
  'test/e2e/load-balancers.test.ts',
  'test/security/registry-isolation.test.ts',
  'test/security/member-networks-driver.test.ts',
  'test/security/hostile-text.test.ts',
  'test/e2e/client.test.ts',
  'test/e2e/l7-policies.test.ts',
  'test/e2e/lifecycle-policies.test.ts',
  'test/e2e/events.test.ts',
  'test/e2e/quota-storm.test.ts',
  'test/e2e/pull-secrets.test.ts',
  'test/security/data-plane-privileges.test.ts',
  'test/security/largest-requests.test.ts',
  'test/e2e/several-processes.test.ts',
  'test/e2e/backup.test.ts',
  'test/e2e/file-shares.test.ts',
  'test/e2e/load-balancer-updates.test.ts',
  'test/security/fairness.test.ts',
  'test/browser/keyboard.test.ts',
  'test/browser/real-drivers.test.ts',
  'test/browser/pages.test.ts',
  'test/browser/load-balancers.test.ts',
  'test/browser/lifecycle-policies.test.ts',
  'test/browser/notifications.test.ts',
  'test/browser/live.test.ts',
  'test/browser/volumes.test.ts',
  'test/browser/sign-in.test.ts',
  'test/browser/frame.test.ts',
  'test/browser/file-shares.test.ts',
  'test/browser/operator.test.ts',
  'test/browser/registries.test.ts',
  'test/browser/audit.test.ts',
  'test/browser/networks.test.ts',
  'test/browser/overview.test.ts',
  'test/browser/tokens.test.ts',
  'test/browser/container-keys.test.ts',
  'test/browser/session.test.ts',
  'test/browser/workers.test.ts',
  'test/browser/development.test.ts',
  'test/several-hosts/shares-and-balancers.test.ts',
  'test/model/model.test.ts',
  'test/several-hosts/nfs-failover.test.ts',
  'src/drivers/ceph/ceph.test.ts',
  'test/several-hosts/database.test.ts',
  'src/platform/acme/acme.test.ts',
  'test/several-hosts/region.test.ts',
  'src/drivers/haproxy/changes.test.ts',
  'test/several-hosts/balancers.test.ts',
  'src/platform/embedded-postgres.test.ts',
  'test/linearizability/linearizability.test.ts',
  'test/clients/python-sdk.test.ts',
  'test/several-hosts/agents.test.ts',
  'src/drivers/haproxy/traffic.test.ts',
  'test/packaging/packages.test.ts',
  'src/drivers/ganesha/ganesha.test.ts',
  'test/console/code-story.test.ts',
  'src/drivers/haproxy/health.test.ts',
  'src/drivers/file-share.contract.test.ts',
  'src/tasks/worker.test.ts',
  'src/drivers/nginx/udp.test.ts',
  'src/drivers/storage-faults.test.ts',
  'src/tasks/change-faults.exhaustive.test.ts',
  'src/tasks/bad-network.exhaustive.test.ts',
  'src/resources/lifecycle-policies/runs/crash.exhaustive.test.ts',
  'src/tasks/broken-database.exhaustive.test.ts',
  'src/tasks/database-faults.exhaustive.test.ts',
  'src/resources/volumes/locks.test.ts',
  'src/resources/lifecycle-policies/runs/runs.test.ts',
  'src/main/older-processes.test.ts',
  'src/drivers/haproxy/drains.test.ts',
  'src/main/migrations.test.ts',
  'src/main/api-processes.test.ts',
  'src/audit/filter-index.test.ts',
  'src/drivers/name-resolution.test.ts',
  'src/resources/sign-in/sign-in.test.ts',
  'src/resources/events/every-resource.test.ts',
  'src/resources/lifecycle-policies/fire-times.exhaustive.test.ts',
  'src/resources/load-balancers/accepted-requests.exhaustive.test.ts',
  'src/resources/volumes/progress.test.ts',
  'src/main/migrations.exhaustive.test.ts',
  'src/resources/thresholds/thresholds.test.ts',
  'src/resources/volumes/volumes.test.ts',
  'src/tasks/time-limits.exhaustive.test.ts',
  'src/resources/file-shares/crash.exhaustive.test.ts',
  'src/resources/lifecycle-policies/runs/requests.test.ts',
  'src/resources/file-shares/quota-drift.exhaustive.test.ts',
  'src/resources/load-balancers/pools/updates.test.ts',
  'src/resources/volumes/crash.exhaustive.test.ts',
  'src/resources/load-balancers/crash.exhaustive.test.ts',
];

/** Fast tests that wait for clocks more than they compute, the longest first. */
const waiting = [
  'src/hosts/hosts.test.ts',
  'src/resources/development/development.test.ts',
  'src/http/time-limit.test.ts',
  'src/hosts/lease.test.ts',
  'src/resources/lifecycle-policies/retention/retention.test.ts',
  'src/backup/backup.test.ts',
  'src/hosts/distant-leases.test.ts',
  'src/resources/notifications/retry-after.test.ts',
  'src/main/installation-checks.test.ts',
  'src/platform/lost-servers.test.ts',
];

/** The files of a project follow each other: only then the next file without isolation gets a process that has the modules. */
const projects = ['system', 'isolated', 'browser', 'programs', 'exhaustive', 'fast'];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeIn = (list: string[], name: string) => (list.includes(name) ? list.indexOf(name) : list.length);
    const rank = ({ project, moduleId }: TestSpecification) =>
      placeIn(projects, project.name) * (longest.length + 1) +
      placeIn(longest, relative(this.ctx.config.root, moduleId));
    // Stable: within a rank, the order of BaseSequencer, which is by duration where it is known and by size otherwise.
    const sorted = (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
    const isWaiting = ({ moduleId, project }: TestSpecification) =>
      project.name === 'fast' && waiting.includes(relative(this.ctx.config.root, moduleId));
    const [first, others] = [sorted.filter(isWaiting), sorted.filter((file) => !isWaiting(file))];
    const start = others.findIndex(({ project }) => project.name === 'fast');
    return start < 0 ? sorted : [...others.slice(0, start), ...spread(first, others.slice(start))];
  }
}

const distance = 8;

/** Follows each of `few` by some of `many`, so that they do not all wait at the same time while the processors are idle. */
const spread = <T>(few: T[], many: T[]): T[] => [
  ...few.flatMap((one, i) => [one, ...many.slice(i * distance, (i + 1) * distance)]),
  ...many.slice(few.length * distance),
];
