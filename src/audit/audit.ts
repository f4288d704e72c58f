/**
 * The audit log: the actor, time, origin, and the old and new values of every change.
 *
 * Invariant: an entry is written in the transaction of its change, so neither exists without the other. The changes are
 * recorded by triggers on the tables (triggers.ts), so no service can omit a row or expose a secret. The triggers record
 * nothing outside of `transaction`, so the observations of workers are not audited.
 */
import { hostname, userInfo } from 'node:os';
import { type Actor, guardOf, type RequestContext, type RequestFacts } from '../authz/actor.ts';
import { deleteInBatches } from '../platform/batches.ts';
import { type Clock, daysBefore } from '../platform/clock.ts';
import { type Db, deferred, type Guard, preparedValue, sendAlone, transaction, type Tx } from '../platform/db.ts';
import { sendGrouped } from '../platform/group-commit.ts';

/** The origin of a change: the peer of the connection, or the account that ran a command. */
export interface Origin extends Partial<RequestFacts['origin']> {
  /** Only for commands and for the start of a server. */
  host?: string;
  account?: string;
}

/**
 * A changed row: `before` is null for an insert, `after` for a delete, and both for a read. Objects that are not rows (a key
 * file, a clock) are recorded in the same form.
 */
export interface Change {
  table: string;
  id: unknown;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

/** An operation, its actor, and the client whose resources it changes. */
export interface AuditedAction {
  operation: string;
  actor: Pick<Actor, 'tokenId'> | null;
  /** Null: only the operator sees the entry. */
  clientId: number | null;
  projectId?: number | null;
  regionId?: number | null;
  requestId?: string;
  origin: Origin;
  /** Whether to write an entry even if no row changed, as for a request. */
  always: boolean;
  /** Changes that the triggers cannot see. */
  changes?: Change[];
  guard?: Guard;
}

/**
 * Writes the entry of a transaction with the changes that the triggers collected, and its delivery if the client has a
 * subscription. Then it forgets them, because transactions of a group follow each other in one (platform/group-commit.ts).
 */
const writeEntry = deferred('audit_entry', {
  parameters: 'timestamptz, int, int, int, int, text, text, jsonb, boolean, jsonb',
  declare: `v_changes text := coalesce(current_setting('cloudyard.changes', true), ''); v_entry bigint;`,
  body: `
  if not $9 and v_changes = '' and $10 = '[]' then return; end if;
  insert into audit_entries (at, client_id, project_id, region_id, token_id, operation, request_id, origin, changes)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $10 || ('[' || rtrim(v_changes, ',') || ']')::jsonb) returning id into v_entry;
  insert into user_action_deliveries (entry_id, subscription_id, next_attempt_at)
  select v_entry, s.id, now() from user_action_subscriptions s where s.client_id = $2;
  perform set_config('cloudyard.changes', '', true), set_config('cloudyard.changes_cut', '', true);`,
});

/** It is the last write, sent with the commit: the transaction holds locks, mainly on quota counters. */
function entryOf(act: AuditedAction, now: Date) {
  const { clientId, projectId, regionId, actor, operation, requestId, origin, always, changes = [] } = act;
  return writeEntry.write(
    ...[now, clientId, projectId || null, regionId || null, actor?.tokenId ?? null, operation, requestId ?? null],
    ...[JSON.stringify(origin), always, JSON.stringify(changes)],
  );
}

const deleteExpired = preparedValue<number>(
  'audit_delete_expired',
  `with old as (
     delete from audit_entries where id in
       (select id from audit_entries where at < $1 limit 500) returning 1
   ) select count(*)::int as count from old`,
);

/** The triggers check this setting. */
const setting = 'cloudyard.audit';

export type Audit = ReturnType<typeof createAudit>;

/** `keepDays`: 0 keeps entries forever. */
export function createAudit({ clock, keepDays }: { clock: Clock; keepDays: number }) {
  return {
    /** Runs `work` in one transaction that ends with the audit entry. `work` may set the client of the action. */
    transaction<T>(db: Db, act: AuditedAction, work: (tx: Tx, act: AuditedAction) => Promise<T>): Promise<T> {
      const { guard } = act;
      const last = () => entryOf(act, clock.now());
      return transaction(db, (tx) => work(tx, act), { setting, last, send: sendOf(act), guard });
    },

    /** Deletes expired entries. */
    async deleteExpired(db: Db, signal?: AbortSignal): Promise<void> {
      if (keepDays === 0) return;
      const oldest = daysBefore(clock.now(), keepDays);
      await deleteInBatches(() => deleteExpired(db, oldest), signal);
    },
  };
}

/**
 * Creates of a project in a region queue for its row counts and for the quota counters of its client, so concurrent ones share
 * a commit. Those of other projects do not wait for them.
 */
function sendOf({ projectId, regionId }: AuditedAction): typeof sendAlone {
  const group = `${projectId} ${regionId}`;
  return projectId ? (pool, writes, ...rest) => sendGrouped(pool, { group }, writes, ...rest) : sendAlone;
}

/** The action of a request. */
export function requestAction(context: RequestContext): AuditedAction {
  const { actor, requestId, request } = context;
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
    guard: guardOf(context),
  };
}

/** The action of a command, or of the start of a server, on this host. */
export function commandAction(operation: string, clientId: number | null = null): AuditedAction {
  return { operation, actor: null, clientId, origin: { host: hostname(), account: accountName() }, always: false };
}

/** The name of the account of this process, or its UID: in a container an account may have no name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
