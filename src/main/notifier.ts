/**
 * Sends notifications. It runs in every process (server, worker or standby) and has its own job slots, so that a webhook
 * which hangs does not delay reconciles.
 */
import { type Clock, systemClock } from '../platform/clock.ts';
import type { Db } from '../platform/db.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import type { Logger } from '../platform/log.ts';
import { alertJob } from '../quota/crossings.ts';
import { createDeliveries, type Deliveries } from '../resources/notifications/reconcile.ts';
import { deliverJob } from '../resources/notifications/store.ts';
import { createUserActionDeliveries } from '../resources/user-actions/reconcile.ts';
import type { Duty } from '../tasks/duties.ts';
import { type JobHandler, startWorker } from '../tasks/worker.ts';
import type { Database } from './database.ts';
import { createDeliveryDrivers, deliveryStatuses } from './drivers.ts';
import type { ShutdownSteps } from './shutdown.ts';
import type { Services } from './services.ts';
import type { Settings } from './settings.ts';

/** Messages that a process sends concurrently. */
const concurrency = 8;
/** A receiver that hangs takes two of them at most. */
const slotsPerClient = 2;

/** Between two scans for a backup that is due. */
const backupPollSeconds = 15;

/** Between two scans for late runs. */
const missedRunsSeconds = 15;

interface NotifierDeps {
  settings: Settings;
  database: Database;
  services: Services;
  log: Logger;
  closing: ShutdownSteps;
}

/** Starts the notifier, and returns the status of its drivers by channel. */
export async function startNotifier(deps: NotifierDeps): Promise<Record<string, DriverStatus>> {
  const { settings, database, services, log, closing } = deps;
  const { clock, tasks, wakeups, metrics } = services;
  const db = database.connect('cloudyard notifier', concurrency + 3);
  metrics.watchDatabase('notifier', db);
  const realClock = settings.development ? systemClock : clock;
  const drivers = createDeliveryDrivers(settings, realClock);
  const { receiverOf } = services.webhooks;
  const deliveries = createDeliveries({ db, clock, log, drivers, receiverOf, onAttempt: metrics.countDelivery });
  const userActions = createUserActionDeliveries({
    ...{ db, clock, hostClock: realClock, log, driver: drivers.webhook },
    ...{ valueOf: services.userActions.valueOf, onAttempt: metrics.countDelivery },
  });
  const notifier = await startWorker({
    db,
    tasks,
    wakeups,
    clock,
    log,
    regionIds: [],
    concurrency,
    slotsPerClient,
    pollMs: 2000,
    sweepSeconds: settings.sweepSeconds,
    reconcilers: [],
    handlers: createJobHandlers(services, deliveries),
    driverStatus: () => Object.entries(deliveryStatuses(drivers)).map(([kind, status]) => ({ ...status, kind })),
    onDriverError: metrics.countDriverError,
    onJobEnd: metrics.countJobEnd,
    duties: [
      { seconds: 1, work: userActions.deliverDue },
      { seconds: missedRunsSeconds, work: services.missedRuns.report },
      { seconds: 3600, work: services.missedRuns.removeOld },
      ...(await backupDuties(deps, db, realClock)),
      { seconds: 300, work: deliveries.requeueLost },
      { seconds: 300, work: () => services.quota.crossings.requeueLost(db) },
    ],
  });
  closing.push(notifier.stop, userActions.stop);
  return deliveryStatuses(drivers);
}

/** The duty of scheduled backups, and its metrics; none without a schedule. */
async function backupDuties(
  { settings, database, services, log }: NotifierDeps,
  db: Db,
  { now }: Clock,
): Promise<Duty[]> {
  const { nextBackup: next } = settings;
  if (!next) return [];
  const { createScheduledBackups, watchBackups } = await import('./scheduled-backups.ts');
  const { operatorId } = await services.clients.bootstrap();
  const { connection } = database;
  watchBackups(services.metrics, next, db);
  const work = createScheduledBackups({
    ...{ settings, next, db, connection, log, operatorId, now },
    notifications: services.notifications,
  });
  return [{ seconds: backupPollSeconds, work }];
}

/** The handlers of jobs that any process may run. */
export function createJobHandlers(
  { thresholds }: Pick<Services, 'thresholds'>,
  deliveries: Deliveries,
): Record<string, JobHandler> {
  return {
    [alertJob]: (clientId) => thresholds.notify(Number(clientId)),
    [deliverJob]: (id, signal) => deliveries.deliver(id, signal),
  };
}
