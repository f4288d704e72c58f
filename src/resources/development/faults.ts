/** Faults that clients inject: rows, which the drivers of all workers consume (drivers/faults.ts). */
import type { RequestContext } from '../../authz/actor.ts';
import { notFound } from '../../errors/catalogue.ts';
import type { Collection, ServiceDeps } from '../service-kit.ts';
import type { CreateFault, Fault, FaultyOperation } from './schema.ts';
import * as store from './store.ts';

export function createFaults({ db, idempotency }: Pick<ServiceDeps, 'db' | 'idempotency'>) {
  return {
    async createFault(context: RequestContext, body: CreateFault): Promise<Fault> {
      const { resource, operation, mode, count = 1, seconds = null, message = null } = body;
      return idempotency.auditedTransaction(db, context, (tx) =>
        store.insert(tx, { resource, operation, mode, count, remaining: count, seconds, message }),
      );
    },

    async listFaults(): Promise<Collection<Fault>> {
      const results = await store.list(db);
      return { count: results.length, results };
    },

    /** Stalled operations continue. */
    clearFaults: (context: RequestContext) => idempotency.auditedTransaction(db, context, store.clear),

    /** Operations that it stalls continue. */
    deleteFault: (context: RequestContext, id: number) =>
      idempotency.auditedTransaction(db, context, async (tx) => {
        if (!(await store.remove(tx, id))) throw notFound('fault', id);
      }),

    async takeFault(resource: string, operation: FaultyOperation) {
      const fault = await store.take(db, resource, operation);
      return fault && { ...fault, cleared: async () => !(await store.exists(db, fault.id)) };
    },
  };
}
