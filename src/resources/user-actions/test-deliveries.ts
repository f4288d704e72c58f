/** Deliveries of user actions as a process makes them: with a driver of its own. */
import type { Cloudyard } from '../../../test/harness.ts';
import { createWebhookDriver } from '../../drivers/webhook/driver.ts';
import { systemClock } from '../../platform/clock.ts';
import { silentLogger } from '../../platform/log.ts';
import { createUserActionDeliveries, type UserActionDeliveries } from './reconcile.ts';

/** The caller stops them. */
export function startDeliveries(
  { db, clock, services }: Cloudyard,
  { onAttempt = () => {}, log = silentLogger } = {},
): UserActionDeliveries {
  const driver = createWebhookDriver({ allowPrivate: true, now: () => new Date() });
  const { valueOf } = services.userActions;
  return createUserActionDeliveries({ db, clock, hostClock: systemClock, log, driver, valueOf, onAttempt });
}
