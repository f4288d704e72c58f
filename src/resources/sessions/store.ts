/** SQL of sessions. */
import { eq, lt, or } from 'drizzle-orm';
import { type Db, prepared, preparedExists, preparedRow, type Tx } from '../../platform/db.ts';
import type { TokenRights } from '../../authz/actor.ts';
import { sessions } from './table.ts';

export interface SessionFacts extends TokenRights {
  id: number;
  secret_hash: Buffer;
  last_used_at: Date;
  expires_at: Date;
  token_id: number;
  token_name: string;
  token_expires_at: Date | null;
  revoked_at: Date | null;
  client_name: string;
}

export const findFacts = preparedRow<SessionFacts, [keyId: string], Db>(
  'session_facts',
  `select s.id, s.secret_hash, s.last_used_at, s.expires_at, t.id as token_id, t.name as token_name,
     t.expires_at as token_expires_at, t.revoked_at, t.role, t.project_ids, c.id as client_id, c.name as client_name,
     c.operator, c.weight
   from sessions s join tokens t on t.id = s.token_id join clients c on c.id = t.client_id where s.key_id = $1`,
);

export async function insert(tx: Tx, session: typeof sessions.$inferInsert): Promise<void> {
  await tx.insert(sessions).values(session);
}

export async function remove(tx: Tx, id: number): Promise<void> {
  await tx.delete(sessions).where(eq(sessions.id, id));
}

/** Deletes the sessions of the token except the `keep` ones used last. Returns whether there were more. */
export const removeAllBut = preparedExists<[tokenId: number, keep: number], Tx>(
  'session_remove_surplus',
  `delete from sessions where id in
     (select id from sessions where token_id = $1 order by last_used_at desc, id desc offset $2) returning id`,
);

/** Removes the sessions that expired before `now` or were last used before `lastUsedBefore`. */
export async function removeEnded(db: Db, now: Date, lastUsedBefore: Date): Promise<void> {
  await db.delete(sessions).where(or(lt(sessions.expiresAt, now), lt(sessions.lastUsedAt, lastUsedBefore)));
}

export const recordUses = prepared<object, [ids: number[], times: Date[]], Db>(
  'session_uses',
  `update sessions s set last_used_at = u.at from unnest($1::int[], $2::timestamptz[]) as u (id, at)
   where s.id = u.id and s.last_used_at < u.at`,
);
