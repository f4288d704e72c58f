/** What clients see of the audit log. An admin of the operator sees all of it, other admins what was done to their client's things. */
import { atLeast } from '../../authz/actor.ts';
import type { Actor } from '../../authz/actor.ts';
import { invalidInput } from '../../errors/catalogue.ts';
import { instantOf, withZone } from '../../platform/clock.ts';
import type { Db } from '../../platform/db.ts';
import { readInGroups } from '../../platform/large-rows.ts';
import type { AuditEntry, ListAudit } from './schema.ts';
import * as store from './store.ts';
import type { EntryRow } from './store.ts';

export type AuditLog = ReturnType<typeof createAuditLog>;

export function createAuditLog({ db }: { db: Db }) {
  return {
    /** A page; its entries come in groups, because some are large. `next`: where the next page begins. */
    async list(actor: Actor, query: ListAudit): Promise<{ next: number | null; entries: AsyncIterable<AuditEntry[]> }> {
      const seesAll = actor.operator && atLeast(actor, 'admin') && !actor.projectIds;
      const limit = query.limit ?? 100;
      const rows = await store.list(db, {
        ...query,
        visible: seesAll ? null : actor,
        from: momentOf('from_timestamp', query),
        to: momentOf('to_timestamp', query),
      });
      const page = rows.slice(0, limit);
      return {
        next: rows.length > limit ? page.at(-1)!.id : null,
        entries: readInGroups(
          page,
          (ids) => store.entries(db, ids),
          (row) => present(row, actor.operator),
        ),
      };
    },
  };
}

/** @throws ClientError 400 for a leap second, or the year 0 */
function momentOf(path: 'from_timestamp' | 'to_timestamp', query: ListAudit): Date | undefined {
  const text = query[path];
  if (text === undefined) return undefined;
  const date = instantOf(text);
  if (!date) throw invalidInput([{ path, message: 'must be a date and time such as 2026-11-20T09:52:52Z' }]);
  return date;
}

/** Which machine and account ran a command is for the operator alone. */
function present(row: EntryRow, forOperator: boolean): AuditEntry {
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
