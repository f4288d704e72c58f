/** SQL of tokens. */
import { and, asc, desc, eq, isNull, sql } from 'drizzle-orm';
import { deleteInBatches } from '../../platform/batches.ts';
import { type Db, prepared, preparedRow, preparedValue, type Tx } from '../../platform/db.ts';
import type { Role, TokenRights } from '../../authz/actor.ts';
import { clients } from '../clients/table.ts';
import { type Found, limitRows, type PageQuery, pageReader, rowById } from '../store-kit.ts';
import { tokens } from './table.ts';

export type TokenRow = typeof tokens.$inferSelect;

interface TokenFacts extends TokenRights {
  id: number;
  secret_hash: Buffer;
  expires_at: Date | null;
  revoked_at: Date | null;
}

export const findFacts = preparedRow<TokenFacts, [keyId: string], Db>(
  'token_facts',
  `select t.id, t.secret_hash, t.client_id, c.operator, c.weight, t.role, t.project_ids, t.expires_at, t.revoked_at
   from tokens t join clients c on c.id = t.client_id where t.key_id = $1`,
);

export async function insert(tx: Tx, token: typeof tokens.$inferInsert): Promise<TokenRow> {
  const [row] = await tx.insert(tokens).values(token).returning();
  return row!;
}

/** Tokens of people who signed in do not count: each person has few, and they end. */
export const limitValid = limitRows<[now: Date]>(clients, {
  of: 'valid tokens',
  most: 1000,
  count: `select count(*) from tokens where client_id = $1 and identity is null and revoked_at is null
    and (expires_at is null or expires_at > $2)`,
  parameters: ['timestamptz'],
});

/** Inserts the token, or replaces the one with the same key id. */
export async function replace(tx: Tx, token: typeof tokens.$inferInsert): Promise<void> {
  const { keyId: _, ...changes } = token;
  await tx
    .insert(tokens)
    .values(token)
    .onConflictDoUpdate({ target: tokens.keyId, set: { ...changes, revokedAt: null } });
}

export async function list(db: Db): Promise<TokenRow[]> {
  return db.select().from(tokens).orderBy(asc(tokens.id));
}

export const find = rowById<TokenRow>(tokens);

interface TokenFilter {
  clientId: number;
  /** Only tokens that are limited to projects among these; null: all tokens. */
  projectIds: number[] | null;
  state?: 'active' | 'expired' | 'revoked' | undefined;
  now: Date;
}

const readPage = pageReader<TokenRow>(tokens);

/** A page of the tokens of a client, the newest first. */
export async function page(
  db: Db,
  { clientId, projectIds, state, now }: TokenFilter,
  page: PageQuery,
): Promise<Found<TokenRow>> {
  const isExpired = sql`coalesce(${tokens.expiresAt} <= ${now.toISOString()}::timestamptz, false)`;
  const states = {
    active: sql`${tokens.revokedAt} is null and not ${isExpired}`,
    expired: sql`${tokens.revokedAt} is null and ${isExpired}`,
    revoked: sql`${tokens.revokedAt} is not null`,
  };
  const where = and(
    eq(tokens.clientId, clientId),
    projectIds === null ? undefined : sql`${tokens.projectIds} <@ ${sql.param(projectIds)}::int[]`,
    state && states[state],
  );
  return readPage(db, { where, order: [desc(tokens.id)], page });
}

const isValid = (clientId: number, name: string) =>
  and(eq(tokens.clientId, clientId), eq(tokens.name, name), isNull(tokens.revokedAt));

/** The tokens of a client with a name that are not revoked. */
export async function findValid(db: Db, clientId: number, name: string): Promise<TokenRow[]> {
  return db.select().from(tokens).where(isValid(clientId, name));
}

/** The tokens with this id, or this part before the `$`. Two at most: only the operator chooses that part of a token. */
export async function findNamed(db: Db, idOrKey: string): Promise<Pick<TokenRow, 'id' | 'keyId'>[]> {
  return db
    .select({ id: tokens.id, keyId: tokens.keyId })
    .from(tokens)
    .where(sql`${tokens.id}::text = ${idOrKey} or ${eq(tokens.keyId, idOrKey)}`)
    .orderBy(asc(tokens.id));
}

/** Returns its client; undefined if the token does not exist. */
export async function revoke(tx: Tx, id: number, now: Date): Promise<{ clientId: number } | undefined> {
  const [revoked] = await tx
    .update(tokens)
    .set({ revokedAt: sql`coalesce(${tokens.revokedAt}, ${now.toISOString()}::timestamptz)` })
    .where(eq(tokens.id, id))
    .returning({ clientId: tokens.clientId });
  return revoked;
}

/** Revokes the tokens of a person that do not have exactly these rights; null: all of them. */
export async function revokeOthers(
  tx: Tx,
  identity: string,
  rights: { clientId: number; role: Role; projectIds: number[] | null } | null,
  now: Date,
): Promise<void> {
  const isSame =
    rights &&
    sql`(${tokens.clientId} = ${rights.clientId} and ${tokens.role} = ${rights.role}
      and ${tokens.projectIds} is not distinct from ${sql.param(rights.projectIds)}::int[])`;
  const of = and(eq(tokens.identity, identity), isNull(tokens.revokedAt));
  await tx
    .update(tokens)
    .set({ revokedAt: now })
    .where(isSame ? and(of, sql`not ${isSame}`) : of);
}

export async function revokeNamed(tx: Tx, clientId: number, name: string, now: Date): Promise<void> {
  await tx.update(tokens).set({ revokedAt: now }).where(isValid(clientId, name));
}

/** Serializes the first starts of several servers on one database. */
export async function lockClient(tx: Tx, clientId: number): Promise<void> {
  await tx.select({ id: clients.id }).from(clients).where(eq(clients.id, clientId)).for('update');
}

/** Whether the client ever had an admin token, in any state. */
export async function hasAdmin(tx: Tx, clientId: number): Promise<boolean> {
  const [admin] = await tx
    .select({ id: tokens.id })
    .from(tokens)
    .where(and(eq(tokens.clientId, clientId), eq(tokens.role, 'admin')))
    .limit(1);
  return admin !== undefined;
}

const removeEnded = preparedValue<number, [before: Date], Db>(
  'token_remove_ended',
  `with removed as (
     delete from tokens where id in (
       select id from tokens where identity is not null and least(expires_at, revoked_at) < $1 limit 500
     ) returning 1
   ) select count(*)::int as count from removed`,
);

/** Deletes tokens of people, with their sessions, that expired or were revoked before this time. Returns their number. */
export function removeEndedSignIns(db: Db, before: Date, signal?: AbortSignal): Promise<number> {
  return deleteInBatches(() => removeEnded(db, before), signal);
}

export const recordUses = prepared<object, [ids: number[], times: Date[]], Db>(
  'token_uses',
  `update tokens t set last_used_at = u.at from unnest($1::int[], $2::timestamptz[]) as u (id, at)
   where t.id = u.id and (t.last_used_at is null or t.last_used_at < u.at)`,
);
