/** The rules of hosts. Agents and the worker of the region use the same rows (src/hosts/). */
import { type Audit, commandAction } from '../../audit/audit.ts';
import type { RequestContext } from '../../authz/actor.ts';
import { ClientError } from '../../errors/catalogue.ts';
import { type HostRow, listHosts } from '../../hosts/store.ts';
import { withZone } from '../../platform/clock.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { type Collection, pageOf, requireFound, type ServiceDeps } from '../service-kit.ts';
import type { Host, ListHosts } from './schema.ts';
import * as store from './store.ts';

interface HostsDeps extends Pick<ServiceDeps, 'db' | 'idempotency'> {
  audit: Audit;
}

export type Hosts = ReturnType<typeof createHosts>;

const what = 'host';
const defaultLimit = 100;

/** Changes are for operators: they have no task, and agents follow the row. */
export function createHosts({ db, idempotency, audit }: HostsDeps) {
  const read = async (on: Db | Tx, regionId: number, name: string): Promise<Host> => {
    const [row] = await listHosts(on, [regionId], name);
    return toResponse(requireFound(row, what, name));
  };
  const requireHost = async (tx: Tx, regionId: number, name: string) =>
    requireFound(await store.find(tx, regionId, name), what, name);

  const setDraining = async (tx: Tx, regionId: number, name: string, draining: boolean): Promise<void> => {
    const { state } = await requireHost(tx, regionId, name);
    if (draining === (state === 'active')) await store.setDraining(tx, regionId, name, draining);
  };
  /** Returns the host from the transaction, whose result an `Idempotency-Key` repeats. */
  const changeDraining = (context: RequestContext, regionId: number, name: string, draining: boolean): Promise<Host> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      await setDraining(tx, regionId, name, draining);
      return read(tx, regionId, name);
    });
  const remove = async (tx: Tx, regionId: number, name: string): Promise<void> => {
    await requireHost(tx, regionId, name);
    if (await store.remove(tx, regionId, name)) return;
    throw new ClientError(
      'Conflict',
      `host ${name} has a valid lease; stop its agent first, or wait until the lease has ended`,
    );
  };

  return {
    get: (regionId: number, name: string): Promise<Host> => read(db, regionId, name),

    async list({ region_id: regionId, ...page }: ListHosts): Promise<Collection<Host>> {
      const rows = await listHosts(db, regionId === undefined ? null : [regionId], null);
      return pageOf(rows.map(toResponse), page, defaultLimit);
    },

    /** No effect on a host that drains or is drained. @throws ClientError 404 */
    drain: (context: RequestContext, regionId: number, name: string) => changeDraining(context, regionId, name, true),

    /** @throws ClientError 404 */
    undrain: (context: RequestContext, regionId: number, name: string) =>
      changeDraining(context, regionId, name, false),

    /** @throws ClientError 404, 409 while the host may serve */
    forget: (context: RequestContext, regionId: number, name: string): Promise<void> =>
      idempotency.auditedTransaction(db, context, (tx) => remove(tx, regionId, name)),

    /** The same for a command on a host. */
    byCommand: (action: 'drain' | 'undrain' | 'forget', regionId: number, name: string): Promise<void> =>
      audit.transaction(db, commandAction(`${action}Host`), (tx) =>
        action === 'forget' ? remove(tx, regionId, name) : setDraining(tx, regionId, name, action === 'drain'),
      ),
  };
}

/** A host whose lease has ended serves nothing, whatever it has reported last. */
function toResponse(row: HostRow): Host {
  return {
    region_id: row.regionId,
    name: row.name,
    address: row.address,
    interface: row.interface,
    state: row.state,
    lease_valid: row.leaseValid,
    lease_until: withZone(row.leaseUntil),
    converged: row.leaseValid && row.converged,
    pending_changes: row.pendingChanges,
    held_groups: row.leaseValid ? row.report.heldGroups : [],
    drivers: row.report.drivers.map(({ kind = '', driver, real, healthy, detail }) => {
      return { kind, driver, real, healthy, detail };
    }),
    version: row.report.version,
    joined_at: withZone(row.joinedAt),
    started_at: withZone(row.startedAt),
  };
}
