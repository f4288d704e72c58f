/**
 * The rules of webhooks. A secret is shown once, when the webhook is made, and encrypted at rest; the only way out is
 * `secretOf`, for deliveries.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { RequestContext } from '../../authz/actor.ts';
import { ClientError, invalidInput, notFound } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Db } from '../../platform/db.ts';
import { reencryptAll } from '../../platform/encryption.ts';
import type { Keyring } from '../../platform/encryption.ts';
import type { Clients } from '../clients/service.ts';
import type { CreateWebhook, NewWebhook, Webhook } from './schema.ts';
import * as store from './store.ts';
import type { WebhookRow } from './store.ts';

export interface WebhooksDeps {
  db: Db;
  clock: Clock;
  idempotency: Idempotency;
  keyring: Keyring;
  clients: Clients;
  /** What is wrong with a URL, or why calls may not go there as its name resolves now; null when nothing is. */
  refuseUrl(url: string): Promise<string | null>;
}

export type Webhooks = ReturnType<typeof createWebhooks>;

/** Of one client: a message is sent to each of them. */
const maxWebhooks = 16;
const contextOf = (id: string) => `webhook:${id}`;

export function createWebhooks(deps: WebhooksDeps) {
  const { db, clock, keyring } = deps;

  return {
    async create(context: RequestContext, clientId: number, body: CreateWebhook): Promise<NewWebhook> {
      await deps.clients.require(clientId);
      // Names are looked up before the transaction begins.
      const refusal = await deps.refuseUrl(body.url);
      if (refusal) throw invalidInput([{ path: 'url', message: refusal }]);
      const secret = body.secret ?? `whsec_${randomBytes(32).toString('base64url')}`;
      const id = randomUUID();
      const webhook = { id, clientId, url: body.url, createdAt: clock.now() };
      const ciphertext = keyring.encrypt(Buffer.from(secret), contextOf(id));
      return deps.idempotency.auditedTransaction(
        db,
        context,
        async (tx) => {
          if ((await store.countUnderLock(tx, clientId)) >= maxWebhooks) {
            throw new ClientError('Conflict', `a client has ${maxWebhooks} webhooks at most; delete one first`);
          }
          await store.insert(tx, { ...webhook, secret: ciphertext });
          return { ...present(webhook), secret };
        },
        { sealed: true },
      );
    },

    async list(clientId: number): Promise<{ count: number; results: Webhook[] }> {
      await deps.clients.require(clientId);
      const rows = await store.list(db, clientId);
      return { count: rows.length, results: rows.map(present) };
    },

    async get(clientId: number, id: string): Promise<Webhook> {
      const row = await store.find(db, clientId, id);
      if (!row) throw notFound('webhook', id);
      return present(row);
    },

    /** What was to be sent there fails at its next attempt. */
    async delete(context: RequestContext, clientId: number, id: string): Promise<void> {
      await deps.idempotency.auditedTransaction(db, context, async (tx) => {
        if (!(await store.remove(tx, clientId, id))) throw notFound('webhook', id);
      });
    },

    /** Null when there is no such webhook any more. @throws EncryptionError */
    async secretOf(id: string): Promise<string | null> {
      const ciphertext = await store.secretOf(db, id);
      return ciphertext && keyring.decrypt(ciphertext, contextOf(id)).toString();
    },

    /** See `reencryptAll`. */
    reencrypt: (): Promise<number> =>
      reencryptAll(keyring, contextOf, {
        after: (id) => store.ciphertextsAfter(db, id),
        replace: (id, old, ciphertext) => store.replaceCiphertext(db, id, old, ciphertext),
      }),
  };
}

function present({ id, url, createdAt }: WebhookRow): Webhook {
  return { id, url, created_at: withZone(createdAt) };
}
