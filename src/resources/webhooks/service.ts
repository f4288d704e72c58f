/**
 * The rules of webhooks.
 *
 * Invariant: a secret is shown once, in the response that creates or changes it, and encrypted at rest. Only `receiverOf`
 * decrypts it, for deliveries.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { RequestContext } from '../../authz/actor.ts';
import { type FieldError, notFound, requireNoErrors } from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import { withZone } from '../../platform/clock.ts';
import { type Keyring, reencryptAll } from '../../platform/encryption.ts';
import type { Clients } from '../clients/service.ts';
import { type Collection, requireFound, type ServiceDeps } from '../service-kit.ts';
import type { CreateWebhook, NewWebhook, UpdatedWebhook, UpdateWebhook, Webhook } from './schema.ts';
import * as store from './store.ts';
import type { WebhookRow } from './store.ts';

interface WebhooksDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  keyring: Keyring;
  clients: Clients;
  /** Why a URL is invalid, or why calls may not go to its current address; null when they may. */
  refuseUrl(url: string): Promise<string | null>;
}

export type Webhooks = ReturnType<typeof createWebhooks>;

const contextOf = (id: string) => `webhook:${id}`;

export function createWebhooks(deps: WebhooksDeps) {
  const { db, clock, keyring } = deps;
  const encrypt = (secret: string, id: string) => keyring.encrypt(Buffer.from(secret), contextOf(id));

  /** What the schema cannot check. */
  const bodyErrors = async ({ url }: ValidFields<UpdateWebhook>): Promise<FieldError[]> => {
    const message = url === undefined ? null : await deps.refuseUrl(url);
    return message === null ? [] : [{ path: 'url', message }];
  };

  return {
    /** For an invalid body. */
    bodyErrors,

    async create(context: RequestContext, clientId: number, body: CreateWebhook): Promise<NewWebhook> {
      await deps.clients.require(clientId);
      // Name resolution needs the network, so it is done before the transaction.
      requireNoErrors(await bodyErrors(body));
      const secret = body.secret ?? generateSecret();
      const id = randomUUID();
      const webhook = { id, clientId, url: new URL(body.url).href, createdAt: clock.now() };
      return deps.idempotency.sealedTransaction(db, context, async (tx) => {
        await store.insert(tx, { ...webhook, secret: encrypt(secret, id) });
        await store.limitOfClient(tx, clientId);
        return { ...toResponse(webhook), secret };
      });
    },

    async list(clientId: number): Promise<Collection<Webhook>> {
      await deps.clients.require(clientId);
      const rows = await store.list(db, clientId);
      return { count: rows.length, results: rows.map(toResponse) };
    },

    async get(clientId: number, id: string): Promise<Webhook> {
      return toResponse(requireFound(await store.find(db, clientId, id), 'webhook', id));
    },

    async update(context: RequestContext, clientId: number, id: string, body: UpdateWebhook): Promise<UpdatedWebhook> {
      requireNoErrors(await bodyErrors(body));
      const secret = body.secret === undefined ? undefined : (body.secret ?? generateSecret());
      return deps.idempotency.auditedTransaction(db, context, async (tx) => {
        const row = await store.update(tx, clientId, id, {
          ...(body.url !== undefined && { url: new URL(body.url).href }),
          // The ID of the path may be in upper case; the one that decrypts is not.
          ...(secret !== undefined && { secret: encrypt(secret, id.toLowerCase()) }),
        });
        return { ...toResponse(requireFound(row, 'webhook', id)), ...(secret !== undefined && { secret }) };
      });
    },

    /** A pending delivery to it fails at its next attempt. */
    async delete(context: RequestContext, clientId: number, id: string): Promise<void> {
      await deps.idempotency.auditedTransaction(db, context, async (tx) => {
        if (!(await store.remove(tx, clientId, id))) throw notFound('webhook', id);
      });
    },

    /** Its URL, and the secret that signs its calls. Null when the webhook was deleted. @throws EncryptionError */
    async receiverOf(id: string): Promise<{ url: string; secret: string } | null> {
      const found = await store.receiverOf(db, id);
      return found && { url: found.url, secret: keyring.decrypt(found.secret, contextOf(id)).toString() };
    },

    /** See `reencryptAll`. */
    reencrypt: (): Promise<number> => reencryptAll(keyring, contextOf, store.ciphertexts(db)),
  };
}

const generateSecret = () => `whsec_${randomBytes(32).toString('base64url')}`;

function toResponse({ id, url, createdAt }: WebhookRow): Webhook {
  return { id, url, created_at: withZone(createdAt) };
}
