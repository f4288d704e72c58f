/** The view of clients on the audit log. An admin of the operator sees all entries, other admins those of their client. */
import { seesAllClients } from '../../authz/access.ts';
import type { Actor, RequestContext } from '../../authz/actor.ts';
import { withZone } from '../../platform/clock.ts';
import { ClientError, invalidInput } from '../../errors/catalogue.ts';
import type { Db } from '../../platform/db.ts';
import { type Groups, readInGroups } from '../../platform/large-rows.ts';
import { readEnd, readInstant } from '../service-kit.ts';
import type { AuditEntry, ListAudit } from './schema.ts';
import * as store from './store.ts';
import type { EntryFilter, EntryRow } from './store.ts';

export type AuditLog = ReturnType<typeof createAuditLog>;

/** Entries that an export reads at a time. */
const exportPage = 1000;

export function createAuditLog({ db }: { db: Db }) {
  /** A page, in groups, because some entries are large. `next`: the start of the next page. */
  const readPage = async (filter: EntryFilter, limit: number, forOperator: boolean) => {
    const rows = await store.list(db, filter, limit);
    const page = rows.slice(0, limit);
    return {
      next: rows.length > limit ? page.at(-1)!.id : null,
      entries: readInGroups(
        page,
        (ids) => store.findEntries(db, ids),
        (row) => toResponse(row, forOperator),
      ),
    };
  };

  /** All entries that match, page by page: constant memory, and no transaction is held meanwhile. */
  async function* readAll(given: EntryFilter, query: ListAudit, forOperator: boolean): AsyncGenerator<AuditEntry[]> {
    const filter = await withRowIds(db, given, query);
    let left = filter.limit ?? Infinity;
    let before = filter.before;
    while (left > 0) {
      const { next, entries } = await readPage({ ...filter, before }, Math.min(left, exportPage), forOperator);
      yield* entries;
      if (next === null) return;
      before = next;
      left -= exportPage;
    }
  }

  return {
    async list(actor: Actor, query: ListAudit): Promise<{ next: number | null; entries: Groups<AuditEntry> }> {
      const filter = await withRowIds(db, filterOf(query, visibleTo(actor)), query);
      return readPage(filter, query.limit ?? 100, actor.operator);
    },

    /**
     * Newest first, without a limit unless the query has one.
     * @throws ClientError 400 before the first entry; 401 after the credential of the caller has become invalid
     */
    export: ({ actor, credential }: RequestContext, query: ListAudit): Groups<AuditEntry> =>
      whileValid(credential, readAll(filterOf(query, visibleTo(actor)), query, actor.operator)),

    /** The same for a command on the host, which sees all entries. */
    exportAll: (query: ListAudit): Groups<AuditEntry> => readAll(filterOf(query, null), query, true),
  };
}

/** The groups until the credential is revoked or expires. It then throws: an export that just ended would look complete. */
async function* whileValid<T>(credential: RequestContext['credential'], groups: AsyncIterable<T>): AsyncGenerator<T> {
  for await (const group of groups) {
    if (credential && !(await credential.check())) {
      throw new ClientError('Unauthenticated', 'the token was revoked or has expired during the export');
    }
    yield group;
  }
}

/** Null: all entries. */
function visibleTo(actor: Actor): Actor | null {
  return seesAllClients(actor) ? null : actor;
}

/** @throws ClientError 400 */
function filterOf({ row_id, row_name, ...query }: ListAudit, visible: EntryFilter['visible']): EntryFilter {
  if (row_name !== undefined && query.table === undefined) {
    throw invalidInput([{ path: 'row_name', message: 'requires table, such as api_keys' }]);
  }
  return {
    ...query,
    visible,
    // UUIDs of rows have lower case.
    rowIds: row_id === undefined ? undefined : [row_id.toLowerCase()],
    from: readInstant(query.from_timestamp),
    to: readEnd(query.to_timestamp),
  };
}

/** The filter with the rows of `row_name`, among those of `row_id`. */
async function withRowIds(db: Db, filter: EntryFilter, { row_name: name }: ListAudit): Promise<EntryFilter> {
  const { table, rowIds } = filter;
  if (name === undefined || table === undefined) return filter;
  const named = await store.findRowIds(db, { ...filter, table, name });
  return { ...filter, rowIds: rowIds === undefined ? named : named.filter((id) => rowIds.includes(id)) };
}

/** Only the operator sees the machine and account that ran a command. */
function toResponse(row: EntryRow, forOperator: boolean): AuditEntry {
  const { host, account, ...origin } = row.origin;
  return {
    id: row.id,
    at: withZone(row.at),
    operation: row.operation,
    token: row.tokenId === null ? null : { id: row.tokenId, name: row.tokenName },
    client_id: row.clientId,
    project_id: row.projectId,
    region_id: row.regionId,
    request_id: row.requestId,
    origin: { ...(forOperator && { host, account }), ...origin } as Record<string, string>,
    changes: row.changes,
  };
}
