/**
 * Notifies the operator of a driver or data directory of this host that is not healthy: a full disk, a driver that does not
 * start.
 *
 * Invariant: at most one message about each of them in an hour, and none before it was unhealthy in two checks in a row,
 * because a daemon that is started again is healthy within seconds. The state is in memory: a new process reports again.
 */
import { type Db, transaction } from '../platform/db.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { Message, Notifications } from '../resources/notifications/service.ts';

interface HostAlertDeps {
  db: Db;
  host: string;
  regionIds: number[];
  /** The statuses of this host; `kind` is set. */
  statuses(): DriverStatus[];
  notifications: Pick<Notifications, 'issue'>;
  operatorId: number;
  /** Milliseconds. */
  now(): number;
}

const windowMs = 3_600_000;

/** Returns the check to call periodically. */
export function createHostAlert(deps: HostAlertDeps): () => Promise<void> {
  const reportedAt = new Map<string, number>();
  let suspected = new Set<string>();
  return async () => {
    const unhealthy = deps.statuses().filter(({ healthy }) => !healthy);
    const now = deps.now();
    const due = unhealthy.filter(({ kind }) => {
      return suspected.has(kind!) && now - (reportedAt.get(kind!) ?? -Infinity) >= windowMs;
    });
    suspected = new Set(unhealthy.map(({ kind }) => kind!));
    for (const status of due) {
      await transaction(deps.db, (tx) => deps.notifications.issue(tx, hostMessage(deps, status)));
      reportedAt.set(status.kind!, now);
    }
  };
}

function hostMessage({ host, regionIds, operatorId }: HostAlertDeps, { kind, driver, detail }: DriverStatus): Message {
  return {
    clientId: operatorId,
    type: 'host_unhealthy',
    subject: `Host ${host}: ${kind} unhealthy`,
    body: { paragraphs: [`${kind} (${driver}) on host ${host}:`, detail] },
    data: { host, region_ids: regionIds, kind, driver, detail },
  };
}
