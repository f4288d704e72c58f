/** SQL of webhooks. Secrets are ciphertext. */
import { and, asc, eq } from 'drizzle-orm';
import type { Db, Tx } from '../../platform/db.ts';
import { clients } from '../clients/table.ts';
import * as kit from '../store-kit.ts';
import { webhooks } from './table.ts';

export type WebhookRow = Omit<typeof webhooks.$inferSelect, 'secret'>;

const { id, clientId, url, createdAt } = webhooks;
const shown = { id, clientId, url, createdAt };

export const insert = kit.insertRow(webhooks);
/** Each message is sent to all webhooks of the client. */
export const limitOfClient = kit.limitRows(clients, {
  of: 'webhooks',
  most: 16,
  advice: 'delete one first',
  count: 'select count(*) from webhooks where client_id = $1',
});
export const ciphertexts = kit.ciphertextsOf(webhooks, webhooks.secret);

export async function list(db: Db, client: number): Promise<WebhookRow[]> {
  return db.select(shown).from(webhooks).where(eq(clientId, client)).orderBy(asc(createdAt), asc(id));
}

const one = (client: number, webhookId: string) => and(eq(id, webhookId), eq(clientId, client));

const readRow = kit.rowById<WebhookRow>(webhooks, { columns: shown });

export async function find(db: Db, client: number, webhookId: string): Promise<WebhookRow | null> {
  const webhook = await readRow(db, webhookId);
  return webhook?.clientId === client ? webhook : null;
}

/** Null if the webhook does not exist. */
export async function update(
  tx: Tx,
  client: number,
  webhookId: string,
  changes: Partial<Pick<typeof webhooks.$inferSelect, 'url' | 'secret'>>,
): Promise<WebhookRow | null> {
  const isOne = one(client, webhookId);
  return Object.keys(changes).length === 0
    ? kit.firstRow(tx.select(shown).from(webhooks).where(isOne))
    : kit.firstRow(tx.update(webhooks).set(changes).where(isOne).returning(shown));
}

/** False if the webhook does not exist. */
export async function remove(tx: Tx, client: number, webhookId: string): Promise<boolean> {
  const { rowCount } = await tx.delete(webhooks).where(one(client, webhookId));
  return rowCount === 1;
}

/** The secret is ciphertext. */
export const receiverOf = (db: Db, webhookId: string) =>
  kit.firstRow(db.select({ url, secret: webhooks.secret }).from(webhooks).where(eq(id, webhookId)));
