/**
 * `Idempotency-Key`: a repeated request within 24 hours gets the same response and changes nothing.
 *
 * Invariant: the key and the response are stored in the transaction that does the work. So a crash leaves both or neither,
 * and of two concurrent requests the second one waits for the commit of the first and then repeats its response. Errors are
 * not stored: a corrected request may use the same key. A response that contains a secret is stored encrypted (`sealed`). A
 * key belongs to the token that sent it, so no other token of the client sees the response.
 */
import { createHash } from 'node:crypto';
import { type Audit, type AuditedAction, requestAction } from '../audit/audit.ts';
import type { RequestContext } from '../authz/actor.ts';
import { ClientError } from '../errors/catalogue.ts';
import type { Clock } from '../platform/clock.ts';
import { type Db, deferred, prepared, transaction, type Tx } from '../platform/db.ts';
import { EncryptionError, type Keyring } from '../platform/encryption.ts';

const lifetime = `interval '24 hours'`;

/** Thrown in a transaction whose key another request has claimed: roll back, and repeat its response. */
export class KeyClaimed extends Error {}

const keyClaimed = 'CY002';

const claim = deferred('idempotency_claim', {
  parameters: 'int, text, text, timestamptz',
  body: `insert into idempotency_keys as k (token_id, key, fingerprint, created_at) values ($1, $2, $3, $4)
   on conflict (token_id, key) do update set fingerprint = excluded.fingerprint, answer = null, created_at = excluded.created_at
   where k.created_at < excluded.created_at - ${lifetime};
   if not found then raise exception using errcode = '${keyClaimed}', message = 'the key is claimed'; end if;`,
  errors: { [keyClaimed]: () => new KeyClaimed() },
});

const store = deferred<unknown[], void, Db | Tx>('idempotency_store', {
  parameters: 'int, text, jsonb',
  body: `update idempotency_keys set answer = $3 where token_id = $1 and key = $2;`,
});

const findStored = prepared<{ fingerprint: string; answer: unknown }>(
  'idempotency_find',
  `select fingerprint, answer from idempotency_keys
   where token_id = $1 and key = $2 and created_at >= $3::timestamptz - ${lifetime}`,
);

const findSealed = prepared<{ token_id: number; key: string; answer: unknown }>(
  'idempotency_sealed',
  `select token_id, key, answer from idempotency_keys where answer ? '$sealed'`,
);

const deleteExpired = prepared(
  'idempotency_delete_expired',
  `delete from idempotency_keys where created_at < $1::timestamptz - ${lifetime}`,
);

export type Idempotency = ReturnType<typeof createIdempotency>;

/** Responses expire by `clock`. `keyring` encrypts those with secrets. */
export function createIdempotency(clock: Clock, keyring: Keyring, audit: Audit) {
  const claimIn = async (tx: Tx, context: RequestContext) => {
    const { key, fingerprint } = context.idempotency!;
    await claim(tx, context.actor.tokenId, key, fingerprint, clock.now());
  };
  const storeIn = async (tx: Tx, context: RequestContext, body: unknown, sealed: boolean) => {
    const text = JSON.stringify(body ?? null);
    const stored = sealed ? seal(keyring, contextOf(context.actor.tokenId, context.idempotency!.key), text) : text;
    await store(tx, context.actor.tokenId, context.idempotency!.key, stored);
  };
  const transactionOf =
    (sealed: boolean) =>
    async <T>(db: Db, context: RequestContext, work: (tx: Tx, act: AuditedAction) => Promise<T>): Promise<T> => {
      const result = await audit.transaction(db, requestAction(context), async (tx, act) => {
        if (!context.idempotency) return work(tx, act);
        await claimIn(tx, context);
        const body = await work(tx, act);
        await storeIn(tx, context, body, sealed);
        return body;
      });
      if (context.idempotency) context.idempotency.claimed = true;
      return result;
    };

  return {
    /** Runs the change of a request in one transaction with its audit entry; under an `Idempotency-Key`, at most once. */
    auditedTransaction: transactionOf(false),
    /** As `auditedTransaction`, for a response that contains a secret: it is stored encrypted. */
    sealedTransaction: transactionOf(true),
    /** The stored response, or undefined. @throws ClientError 409 when the key was used for a different request */
    async findResponse(db: Db, context: RequestContext): Promise<{ body: unknown } | undefined> {
      const { key, fingerprint } = context.idempotency!;
      const [row] = await findStored(db, context.actor.tokenId, key, clock.now());
      if (row && row.fingerprint !== fingerprint) {
        throw new ClientError(
          'IdempotencyKeyReused',
          `the Idempotency-Key ${JSON.stringify(key)} was used for a different request within 24 hours; use a new key`,
        );
      }
      return row && { body: unseal(keyring, contextOf(context.actor.tokenId, key), row.answer) };
    },
    /** Stores the response of a request that changed nothing (a price, a check of limits). */
    async storeResponse(db: Db, context: RequestContext, body: unknown): Promise<void> {
      if (context.idempotency!.claimed) return;
      await transaction(db, async (tx) => {
        await claimIn(tx, context);
        await storeIn(tx, context, body, false);
      });
      context.idempotency!.claimed = true;
    },
    /** Deletes responses that are older than 24 hours. */
    async deleteExpired(db: Db): Promise<void> {
      await deleteExpired(db, clock.now());
    },
    /** Encrypts with the current key the responses that an older key encrypted. Returns their number. */
    async reencrypt(db: Db): Promise<number> {
      let count = 0;
      for (const { token_id, key, answer } of await findSealed(db)) {
        const context = contextOf(token_id, key);
        if (keyring.isCurrent(Buffer.from((answer as Sealed)[sealMark], 'base64'))) continue;
        await store(db, token_id, key, seal(keyring, context, JSON.stringify(unseal(keyring, context, answer))));
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

/** @throws ClientError 409 when the key file no longer has the key that encrypted it */
function unseal(keyring: Keyring, context: string, stored: unknown): unknown {
  const sealed = (stored as Record<string, unknown> | null)?.[sealMark];
  if (typeof sealed !== 'string') return stored;
  try {
    return JSON.parse(keyring.decrypt(Buffer.from(sealed, 'base64'), context).toString());
  } catch (error) {
    if (!(error instanceof EncryptionError)) throw error;
    const message =
      'the request was done, but its response can no longer be decrypted (the key was removed); use a new Idempotency-Key';
    throw new ClientError('IdempotencyKeyReused', message, { cause: error });
  }
}

/** Hex SHA-256 of method, path and body. Bodies are compared by value: the order of fields does not matter. */
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
