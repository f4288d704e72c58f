/** Clients own projects, tokens and quotas. The operator creates them; the first start creates the operator's client. */
import { type Audit, commandAction } from '../../audit/audit.ts';
import type { RequestContext } from '../../authz/actor.ts';
import { ClientError, type FieldError, errorsOfRepeated, requireNoErrors } from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import { withZone } from '../../platform/clock.ts';
import type { Tx } from '../../platform/db.ts';
import type { ReferenceCaches } from '../../platform/reference-cache.ts';
import type { Networks } from '../networks/service.ts';
import type { Projects } from '../projects/service.ts';
import type { Regions } from '../regions/service.ts';
import { type Collection, orNameTaken, requireFound, type ServiceDeps, toCollection } from '../service-kit.ts';
import type { PageQuery } from '../store-kit.ts';
import type { Client, CreateClient, UpdateClient } from './schema.ts';
import * as store from './store.ts';
import type { ClientRow } from './store.ts';

interface ClientsDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  audit: Audit;
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

  /** Inserts a client with its default project, and a network in each region. */
  const insertClient = async (tx: Tx, name: string, operator: boolean) => {
    const clientId = await store.insert(tx, name, operator, clock.now());
    const projectId = await deps.projects.createFirst(tx, clientId);
    for (const region of deps.regions.all()) {
      await deps.networks.createDefault(tx, { clientId, projectId, regionId: region.id, regionName: region.name });
    }
    return { clientId, projectId };
  };

  const get = async (id: number): Promise<Client> => toResponse(requireFound(await store.find(db, id), 'client', id));

  return {
    get,

    async update(context: RequestContext, id: number, body: UpdateClient): Promise<Client> {
      await get(id);
      const { name, emails } = body;
      if (name !== undefined && !context.actor.operator) {
        const message = 'only the operator may rename a client';
        throw new ClientError('Forbidden', message, { errors: [{ path: 'name', message }] });
      }
      requireNoErrors(errorsOfClient(body));
      if (name !== undefined || emails) {
        await deps.idempotency.auditedTransaction(db, context, async (tx) => {
          // Sessions show the name.
          if (name !== undefined) await deps.caches.changed(tx);
          await orTaken(store.update(tx, id, { name, emails }), name);
        });
      }
      return get(id);
    },

    async createByApi(context: RequestContext, { name }: CreateClient): Promise<Client> {
      return deps.idempotency.auditedTransaction(db, context, async (tx, act) => {
        const { clientId } = await orTaken(insertClient(tx, name, false), name);
        act.clientId = clientId;
        return toResponse((await store.find(tx, clientId))!);
      });
    },

    async page(query: PageQuery): Promise<Collection<Client>> {
      return toCollection(await store.page(db, query), toResponse);
    },

    /** @throws ClientError 404 */
    async require(id: number): Promise<void> {
      requireFound(await store.find(db, id), 'client', id);
    },

    async create(name: string): Promise<{ clientId: number; projectId: number }> {
      return audit.transaction(db, commandAction('createClient'), async (tx, act) => {
        const made = await insertClient(tx, name, false);
        act.clientId = made.clientId;
        return made;
      });
    },

    list: () => store.list(db),

    /** Every server applies the weight within a second. */
    async setWeight(id: number, weight: number): Promise<void> {
      return audit.transaction(db, commandAction('setWeight', id), async (tx) => {
        await deps.caches.changed(tx);
        await store.setWeight(tx, id, weight);
      });
    },

    async exists(id: number): Promise<boolean> {
      return (await store.find(db, id)) !== null;
    },

    /** Creates the operator's client with project 1 in an empty database. Servers may call it concurrently. */
    async bootstrap(): Promise<{ operatorId: number }> {
      const found = audit.transaction(db, commandAction('createOperator'), async (tx) => {
        await tx.$client.query('select pg_advisory_xact_lock($1)', [firstStart]);
        const operator = await store.findOperator(tx);
        if (operator) return { operatorId: operator.id };
        const { clientId } = await insertClient(tx, 'Operator', true);
        return { operatorId: clientId };
      });
      return found.catch((error: unknown) => {
        throw error instanceof ClientError && error.code === 'QuotaExceeded' ? noClientAllowed(error) : error;
      });
    },
  };
}

function toResponse({ id, name, emails, createdAt }: ClientRow): Client {
  return { id, name, emails, created_at: withZone(createdAt) };
}

/** The error of a first start, which names no quota of a client. */
function noClientAllowed(cause: ClientError): Error {
  const limits = 'project_count, network_count and subnet_count must be at least 1 in the quotas file';
  return new Error(`${limits}: each client has a project, and a network with a subnet in each region`, { cause });
}

function orTaken<T>(write: Promise<T>, name: string | undefined): Promise<T> {
  return orNameTaken(write, 'clients_name_unique', `another client has the name ${JSON.stringify(name)}`);
}

/** The rules of an update that its schema cannot express. */
export function errorsOfClient({ emails }: ValidFields<UpdateClient>): FieldError[] {
  // Case does not distinguish mailboxes.
  const mailboxes = (emails ?? []).map((email) => email.toLowerCase());
  return errorsOfRepeated(mailboxes, (at) => ({ path: `emails.${at}`, message: 'is listed twice' }));
}
