/**
 * `Idempotency-Key`: the same request within 24 hours gets the same answer and does nothing more.
 *
 * Invariant: a key is claimed, with the answer, in the transaction that does the work. So a crash leaves both or
 * neither, and of two requests at once the second waits for the first one's commit and then repeats its answer.
 * Errors are not kept: whoever mends a request may send it under the same key. An answer that shows a secret is kept
 * encrypted (`sealed`). A key belongs to the token that sent it, so no other token of the client sees the answer.
 */
import { createHash } from 'node:crypto';
import { requestAction } from '../audit/audit.ts';
import type { AuditedAction, Audit } from '../audit/audit.ts';
import type { RequestContext } from '../authz/actor.ts';
import { ClientError } from '../errors/catalogue.ts';
import type { Clock } from '../platform/clock.ts';
import { prepared, transaction } from '../platform/db.ts';
import type { Db, Tx } from '../platform/db.ts';
import { EncryptionError } from '../platform/encryption.ts';
import type { Keyring } from '../platform/encryption.ts';

const lifetime = `interval '24 hours'`;

const claim = prepared(
  'idempotency_claim',
  `insert into idempotency_keys as k (token_id, key, fingerprint, created_at) values ($1, $2, $3, $4)
   on conflict (token_id, key) do update set fingerprint = excluded.fingerprint, answer = null, created_at = excluded.created_at
   where k.created_at < excluded.created_at - ${lifetime}
   returning 1`,
);

const keep = prepared(
  'idempotency_keep',
  `update idempotency_keys set answer = $3::jsonb where token_id = $1 and key = $2`,
);

const recall = prepared<{ fingerprint: string; answer: unknown }>(
  'idempotency_recall',
  `select fingerprint, answer from idempotency_keys
   where token_id = $1 and key = $2 and created_at >= $3::timestamptz - ${lifetime}`,
);

const sealed = prepared<{ token_id: number; key: string; answer: unknown }>(
  'idempotency_sealed',
  `select token_id, key, answer from idempotency_keys where answer ? '$sealed'`,
);

const deleteExpired = prepared(
  'idempotency_forget',
  `delete from idempotency_keys where created_at < $1::timestamptz - ${lifetime}`,
);

/** Thrown inside a transaction whose key another request has claimed: roll back, and repeat that one's answer. */
export class AlreadyAnswered extends Error {}

export interface Idempotency {
  /** Runs a change of a request in one transaction, with its entry in the audit log; under an `Idempotency-Key`, at most once. */
  auditedTransaction<T>(
    db: Db,
    context: RequestContext,
    work: (tx: Tx, act: AuditedAction) => Promise<T>,
    options?: { sealed?: boolean },
  ): Promise<T>;
  /** The kept answer, or undefined. @throws ClientError 409 when the key was used for another request */
  recall(db: Db, context: RequestContext): Promise<{ answer: unknown } | undefined>;
  /** Keeps the answer of a request that changed nothing (a price, a check of limits). */
  keepUnclaimed(db: Db, context: RequestContext, answer: unknown): Promise<void>;
  /** Deletes what is older than 24 hours. */
  deleteExpired(db: Db): Promise<void>;
  /** Seals with the current key what an older one sealed. Returns how many answers these were. */
  reencrypt(db: Db): Promise<number>;
}

export function createIdempotency(clock: Clock, keyring: Keyring, audit: Audit): Idempotency {
  const claimIn = async (tx: Tx, context: RequestContext) => {
    const { key, fingerprint } = context.idempotency!;
    const claimed = await claim(tx, context.actor.tokenId, key, fingerprint, clock.now());
    if (claimed.length === 0) throw new AlreadyAnswered();
  };
  const keepIn = async (tx: Tx, context: RequestContext, answer: unknown, sealed: boolean) => {
    const text = JSON.stringify(answer ?? null);
    const kept = sealed ? seal(keyring, contextOf(context.actor.tokenId, context.idempotency!.key), text) : text;
    await keep(tx, context.actor.tokenId, context.idempotency!.key, kept);
  };
  const auditedTransaction: Idempotency['auditedTransaction'] = async (db, context, work, { sealed = false } = {}) => {
    const result = await audit.transaction(db, requestAction(context), async (tx, act) => {
      if (!context.idempotency) return work(tx, act);
      await claimIn(tx, context);
      const answer = await work(tx, act);
      await keepIn(tx, context, answer, sealed);
      return answer;
    });
    if (context.idempotency) context.idempotency.claimed = true;
    return result;
  };

  return {
    auditedTransaction,
    async recall(db, context) {
      const { key, fingerprint } = context.idempotency!;
      const [row] = await recall(db, context.actor.tokenId, key, clock.now());
      if (row && row.fingerprint !== fingerprint) {
        throw new ClientError(
          'IdempotencyKeyReused',
          `the Idempotency-Key ${JSON.stringify(key)} was used for another request within 24 hours; use a new key`,
        );
      }
      return row && { answer: unseal(keyring, contextOf(context.actor.tokenId, key), row.answer) };
    },
    async keepUnclaimed(db, context, answer) {
      if (context.idempotency!.claimed) return;
      await transaction(db, async (tx) => {
        await claimIn(tx, context);
        await keepIn(tx, context, answer, false);
      });
      context.idempotency!.claimed = true;
    },
    async deleteExpired(db) {
      await deleteExpired(db, clock.now());
    },
    async reencrypt(db) {
      let count = 0;
      for (const { token_id, key, answer } of await sealed(db)) {
        const context = contextOf(token_id, key);
        if (keyring.isCurrent(Buffer.from((answer as Sealed)[sealMark], 'base64'))) continue;
        await keep(db, token_id, key, seal(keyring, context, JSON.stringify(unseal(keyring, context, answer))));
        count++;
      }
      return count;
    },
  };
}

const sealMark = '$sealed';
type Sealed = { [sealMark]: string };
const contextOf = (tokenId: number, key: string) => `idempotency:${tokenId}:${key}`;

function seal(keyring: Keyring, context: string, text: string): string {
  return JSON.stringify({ [sealMark]: keyring.encrypt(Buffer.from(text), context).toString('base64') });
}

/** @throws ClientError 409 when the key that sealed it is gone from the key file */
function unseal(keyring: Keyring, context: string, kept: unknown): unknown {
  const sealed = (kept as Record<string, unknown> | null)?.[sealMark];
  if (typeof sealed !== 'string') return kept;
  try {
    return JSON.parse(keyring.decrypt(Buffer.from(sealed, 'base64'), context).toString());
  } catch (error) {
    if (!(error instanceof EncryptionError)) throw error;
    const message =
      'the request was done, but its answer cannot be read any more (the key is gone); use a new Idempotency-Key';
    throw new ClientError('IdempotencyKeyReused', message, { cause: error });
  }
}

/** Hex SHA-256 over what makes a request the same request. Bodies are compared by value, not by spelling. */
export function fingerprintOf(method: string, path: string, body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify([method, path, canonical(body)]))
    .digest('hex');
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== 'object') return value;
  return Object.keys(value)
    .sort()
    .map((key) => [key, canonical((value as Record<string, unknown>)[key])]);
}
