/**
 * The notification threshold of a client, and the message about quotas that reached it. The counters themselves detect
 * crossings (src/quota/crossings.ts); `notify` runs when the grouping window of the first crossing has ended.
 */
import type { RequestContext } from '../../authz/actor.ts';
import { withZone } from '../../platform/clock.ts';
import { transaction } from '../../platform/db.ts';
import { defaultThreshold } from '../../quota/crossings.ts';
import type { Clients } from '../clients/service.ts';
import type { Notifications } from '../notifications/service.ts';
import type { Regions } from '../regions/service.ts';
import type { ServiceDeps } from '../service-kit.ts';
import { quotasMessage, thresholdMessage } from './desired.ts';
import type { QuotasMessage, SetThreshold, Threshold } from './schema.ts';

interface ThresholdsDeps extends Omit<ServiceDeps, 'tasks'> {
  clients: Clients;
  regions: Regions;
  notifications: Notifications;
}

export type Thresholds = ReturnType<typeof createThresholds>;

export function createThresholds(deps: ThresholdsDeps) {
  const { db, clock } = deps;
  const { crossings } = deps.quota;
  const { nameOf } = deps.regions;

  const get = async (clientId: number): Promise<Threshold> => {
    const [row] = await Promise.all([crossings.threshold(db, clientId), deps.clients.require(clientId)]);
    return {
      client_id: clientId,
      threshold: row?.threshold ?? defaultThreshold,
      last_message: (row?.lastMessage ?? null) as QuotasMessage | null,
      last_sending: withZone(row?.lastSending ?? null),
    };
  };

  return {
    /** The effective threshold: the default when none is set. */
    get,

    async set(context: RequestContext, clientId: number, body: SetThreshold): Promise<Threshold> {
      await deps.clients.require(clientId);
      const { threshold = defaultThreshold } = body;
      await deps.idempotency.auditedTransaction(db, context, (tx) => crossings.setThreshold(tx, clientId, threshold));
      return get(clientId);
    },

    /** Restores the default. The last message is cleared here, but stays among the notifications. */
    async delete(context: RequestContext, clientId: number): Promise<void> {
      await deps.clients.require(clientId);
      await deps.idempotency.auditedTransaction(db, context, (tx) => crossings.setThreshold(tx, clientId, null));
    },

    /** Notifies a client of all crossings since its last message, if there are any. */
    async notify(clientId: number): Promise<void> {
      const { name } = await deps.clients.get(clientId);
      await transaction(db, async (tx) => {
        const found = await crossings.take(tx, clientId);
        if (found.length === 0) return;
        const threshold = (await crossings.threshold(tx, clientId))?.threshold ?? defaultThreshold;
        const message = thresholdMessage({ id: clientId, name, threshold }, found, nameOf);
        await deps.notifications.issue(tx, message);
        await crossings.recordMessage(tx, clientId, quotasMessage(found, nameOf), clock.now());
      });
    },
  };
}
