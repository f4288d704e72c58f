/**
 * The rules of webhooks.
 *
 * Invariant: a secret is shown once, in the response that creates the webhook, and encrypted at rest. Only `secretOf`
 * decrypts it, for deliveries.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { RequestContext } from '../../authz/actor.ts';
import { ClientError, invalidInput, notFound } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import { reencryptAll } from '../../platform/encryption.ts';
import type { Keyring } from '../../platform/encryption.ts';
import type { Clients } from '../clients/service.ts';
import { requireFound } from '../service-kit.ts';
import type { ServiceDeps } from '../service-kit.ts';
import type { CreateWebhook, NewWebhook, Webhook } from './schema.ts';
import * as store from './store.ts';
import type { WebhookRow } from './store.ts';

interface WebhooksDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  keyring: Keyring;
  clients: Clients;
  /** Why a URL is invalid, or why calls may not go to its current address; null when they may. */
  refuseUrl(url: string): Promise<string | null>;
}

export type Webhooks = ReturnType<typeof createWebhooks>;

/** Per client: each message is sent to all of them. */
const maxWebhooks = 16;
const contextOf = (id: string) => `webhook:${id}`;

export function createWebhooks(deps: WebhooksDeps) {
  const { db, clock, keyring } = deps;

  return {
    async create(context: RequestContext, clientId: number, body: CreateWebhook): Promise<NewWebhook> {
      await deps.clients.require(clientId);
      // Name resolution needs the network, so it is done before the transaction.
      const refusal = await deps.refuseUrl(body.url);
      if (refusal) throw invalidInput([{ path: 'url', message: refusal }]);
      const secret = body.secret ?? `whsec_${randomBytes(32).toString('base64url')}`;
      const id = randomUUID();
      const webhook = { id, clientId, url: new URL(body.url).href, createdAt: clock.now() };
      const ciphertext = keyring.encrypt(Buffer.from(secret), contextOf(id));
      return deps.idempotency.auditedTransaction(
        db,
        context,
        async (tx) => {
          if ((await store.countUnderLock(tx, clientId)) >= maxWebhooks) {
            throw new ClientError('Conflict', `a client can have at most ${maxWebhooks} webhooks; delete one first`);
          }
          await store.insert(tx, { ...webhook, secret: ciphertext });
          return { ...toResponse(webhook), secret };
        },
        { sealed: true },
      );
    },

    async list(clientId: number): Promise<{ count: number; results: Webhook[] }> {
      await deps.clients.require(clientId);
      const rows = await store.list(db, clientId);
      return { count: rows.length, results: rows.map(toResponse) };
    },

    async get(clientId: number, id: string): Promise<Webhook> {
      return toResponse(requireFound(await store.find(db, clientId, id), 'webhook', id));
    },

    /** A pending delivery to it fails at its next attempt. */
    async delete(context: RequestContext, clientId: number, id: string): Promise<void> {
      await deps.idempotency.auditedTransaction(db, context, async (tx) => {
        if (!(await store.remove(tx, clientId, id))) throw notFound('webhook', id);
      });
    },

    /** Null when the webhook was deleted. @throws EncryptionError */
    async secretOf(id: string): Promise<string | null> {
      const ciphertext = await store.secretOf(db, id);
      return ciphertext && keyring.decrypt(ciphertext, contextOf(id)).toString();
    },

    /** See `reencryptAll`. */
    reencrypt: (): Promise<number> => reencryptAll(keyring, contextOf, store.ciphertexts(db)),
  };
}

function toResponse({ id, url, createdAt }: WebhookRow): Webhook {
  return { id, url, created_at: withZone(createdAt) };
}
