/** Clients: who owns projects, tokens and quotas. The operator makes them; the first start makes the operator's. */
import { commandAction } from '../../audit/audit.ts';
import type { Audit } from '../../audit/audit.ts';
import type { RequestContext } from '../../authz/actor.ts';
import { invalidInput, notFound } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { ReferenceCaches } from '../../platform/reference-cache.ts';
import type { Networks } from '../networks/service.ts';
import type { Projects } from '../projects/service.ts';
import type { Regions } from '../regions/service.ts';
import type { Client, UpdateClient } from './schema.ts';
import * as store from './store.ts';

export interface ClientsDeps {
  db: Db;
  clock: Clock;
  audit: Audit;
  idempotency: Idempotency;
  projects: Projects;
  networks: Networks;
  regions: Regions;
  caches: ReferenceCaches;
}

export type Clients = ReturnType<typeof createClients>;

/** Advisory lock that serializes first starts of servers that share a database. */
const firstStart = 0x636c6f75_64;

export function createClients(deps: ClientsDeps) {
  const { db, clock, audit } = deps;

  /** A client with its default project, and a network in each region. */
  const insertClient = async (tx: Tx, name: string, operator: boolean) => {
    const clientId = await store.insert(tx, name, operator, clock.now());
    const projectId = await deps.projects.createFirst(tx, clientId, 'Default');
    for (const region of deps.regions.all()) {
      await deps.networks.createDefault(tx, { clientId, projectId, regionId: region.id, regionName: region.name });
    }
    return { clientId, projectId };
  };

  const get = async (id: number): Promise<Client> => {
    const client = await store.find(db, id);
    if (!client) throw notFound('client', id);
    return { id, name: client.name, emails: client.emails, created_at: withZone(client.createdAt) };
  };

  return {
    get,

    async update(context: RequestContext, id: number, body: UpdateClient): Promise<Client> {
      await get(id);
      const { emails } = body;
      if (emails) {
        const faults = repeated(emails).map((at) => ({ path: `emails.${at}`, message: 'is there twice' }));
        if (faults.length > 0) throw invalidInput(faults);
        await deps.idempotency.auditedTransaction(db, context, (tx) => store.setEmails(tx, id, emails));
      }
      return get(id);
    },

    /** @throws ClientError 404 */
    async require(id: number): Promise<void> {
      if (!(await store.find(db, id))) throw notFound('client', id);
    },

    async create(name: string): Promise<{ clientId: number; projectId: number }> {
      return audit.transaction(db, commandAction('createClient'), async (tx, act) => {
        const made = await insertClient(tx, name, false);
        act.clientId = made.clientId;
        return made;
      });
    },

    list: () => store.list(db),

    /** Every server applies it within a second. Returns whether there is such a client. */
    async setWeight(id: number, weight: number): Promise<boolean> {
      return audit.transaction(db, commandAction('setWeight', id), async (tx) => {
        await deps.caches.changed(tx);
        return store.setWeight(tx, id, weight);
      });
    },

    async exists(id: number): Promise<boolean> {
      return (await store.find(db, id)) !== null;
    },

    /**
     * Makes the operator's client with project 1 when there is nothing yet. Safe to call always and everywhere.
     */
    async bootstrap(): Promise<{ operatorId: number }> {
      return audit.transaction(db, commandAction('createOperator'), async (tx) => {
        await tx.$client.query('select pg_advisory_xact_lock($1)', [firstStart]);
        const operator = await store.operator(tx);
        if (operator) return { operatorId: operator.id };
        const { clientId } = await insertClient(tx, 'Operator', true);
        return { operatorId: clientId };
      });
    },
  };
}

/** Places of the addresses that stood further up already; upper and lower case are the same mailbox nearly everywhere. */
function repeated(emails: string[]): number[] {
  const lower = emails.map((email) => email.toLowerCase());
  return lower.flatMap((email, at) => (lower.indexOf(email) < at ? [at] : []));
}
