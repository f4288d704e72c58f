/**
 * The audit log: who changed what, when, from where, before and after.
 *
 * Invariant: an entry stands in the transaction of the change that it tells of, so neither is there without the other.
 * What changed is not told by whoever changes it but by triggers on the tables (triggers.ts), so no service can forget
 * a row, or show a secret. They write nothing outside of `transaction`: what workers observe is no mutation.
 */
import { hostname, userInfo } from 'node:os';
import pg from 'pg';
import type { Actor, RequestContext } from '../authz/actor.ts';
import type { Clock } from '../platform/clock.ts';
import { prepared, transaction } from '../platform/db.ts';
import type { Db, Tx } from '../platform/db.ts';

/** From where: the peer of the connection, or the account that ran a command. */
export interface Origin {
  address?: string;
  /** What a proxy (or the client itself) says, so only as true as they are. */
  forwarded_for?: string;
  user_agent?: string;
  method?: string;
  path?: string;
  /** Of a command, or of a server that starts. */
  host?: string;
  account?: string;
}

/**
 * A row that is not as it was: `before` is null where it was made, `after` where it was removed, and both where it was
 * only looked at. What is no row of a table (a key file, a clock) is told like one.
 */
export interface Change {
  table: string;
  id: unknown;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

/** What is done, by whom, to whose things. */
export interface AuditedAction {
  operation: string;
  actor: Pick<Actor, 'tokenId'> | null;
  /** Null: nobody but the operator sees the entry. */
  clientId: number | null;
  projectId?: number | null;
  regionId?: number | null;
  requestId?: string;
  origin: Origin;
  /** Whether there is an entry even where no row is other than it was, as for a request. */
  always: boolean;
  /** What the triggers cannot see. */
  changes?: Change[];
}

export interface Audit {
  /** Runs a change in one transaction that ends with its entry. `work` may still say whose things these are. */
  transaction<T>(db: Db, act: AuditedAction, work: (tx: Tx, act: AuditedAction) => Promise<T>): Promise<T>;
  /** Deletes entries that are older than they are kept. */
  deleteExpired(db: Db): Promise<void>;
}

/**
 * As text, because it goes with the commit: what is changed last is what others wait for, a counter above all. The
 * function (triggers.ts) has its statement planned.
 */
function entryOf(act: AuditedAction, now: Date): string {
  const { clientId, projectId, regionId, actor, operation, requestId, origin, always, changes = [] } = act;
  const values = [
    pg.escapeLiteral(now.toISOString()),
    ...[clientId, projectId || null, regionId || null, actor?.tokenId ?? null].map(String),
    pg.escapeLiteral(operation),
    requestId === undefined ? 'null' : pg.escapeLiteral(requestId),
    pg.escapeLiteral(JSON.stringify(origin)),
    String(always),
    pg.escapeLiteral(JSON.stringify(changes)),
  ];
  return `select cloudyard_audit_entry(${values.join(', ')})`;
}

const deleteExpired = prepared<{ count: number }>(
  'audit_forget',
  `with old as (
     delete from audit_entries where id in
       (select id from audit_entries where at < $1 limit 10000) returning 1
   ) select count(*)::int as count from old`,
);

/** The triggers look at this; `set local` ends with the transaction. */
const begin = `begin; set local cloudyard.audit = 'on'`;
const dayMs = 86_400_000;

/** `keepDays`: 0 keeps entries for ever. */
export function createAudit({ clock, keepDays }: { clock: Clock; keepDays: number }): Audit {
  return {
    transaction: (db, act, work) =>
      transaction(db, (tx) => work(tx, act), { begin, commit: () => `${entryOf(act, clock.now())}; commit` }),

    async deleteExpired(db) {
      if (keepDays === 0) return;
      const oldest = new Date(clock.now().getTime() - keepDays * dayMs);
      while ((await deleteExpired(db, oldest))[0]!.count > 0);
    },
  };
}

/** What a request does, as far as it said. */
export function requestAction({ actor, requestId, request }: RequestContext): AuditedAction {
  const { operation = 'unknown', origin = {}, scope } = request ?? {};
  return {
    operation,
    actor,
    clientId: scope?.clientId ?? actor.clientId,
    projectId: scope?.projectId ?? null,
    regionId: scope?.regionId ?? null,
    requestId,
    origin,
    always: true,
  };
}

/** What a command, or the start of a server, does on this machine. */
export function commandAction(operation: string, clientId: number | null = null): AuditedAction {
  return { operation, actor: null, clientId, origin: { host: hostname(), account: accountName() }, always: false };
}

/** Who runs this process. A container may have an account without a name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
