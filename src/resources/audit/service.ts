/** The view of clients on the audit log. An admin of the operator sees all entries, other admins those of their client. */
import { atLeast } from '../../authz/actor.ts';
import type { Actor } from '../../authz/actor.ts';
import { withZone } from '../../platform/clock.ts';
import type { Db } from '../../platform/db.ts';
import { readInGroups } from '../../platform/large-rows.ts';
import { requireInstant } from '../service-kit.ts';
import type { AuditEntry, ListAudit } from './schema.ts';
import * as store from './store.ts';
import type { EntryRow } from './store.ts';

export type AuditLog = ReturnType<typeof createAuditLog>;

export function createAuditLog({ db }: { db: Db }) {
  return {
    /** A page, in groups, because some entries are large. `next`: the start of the next page. */
    async list(actor: Actor, query: ListAudit): Promise<{ next: number | null; entries: AsyncIterable<AuditEntry[]> }> {
      const seesAll = actor.operator && atLeast(actor, 'admin') && !actor.projectIds;
      const limit = query.limit ?? 100;
      const rows = await store.list(db, {
        ...query,
        visible: seesAll ? null : actor,
        from: optionalInstant('from_timestamp', query.from_timestamp),
        to: optionalInstant('to_timestamp', query.to_timestamp),
      });
      const page = rows.slice(0, limit);
      return {
        next: rows.length > limit ? page.at(-1)!.id : null,
        entries: readInGroups(
          page,
          (ids) => store.findEntries(db, ids),
          (row) => toResponse(row, actor.operator),
        ),
      };
    },
  };
}

function optionalInstant(path: string, text: string | undefined): Date | undefined {
  return text === undefined ? undefined : requireInstant(path, text);
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
