/** SQL of webhooks. Secrets are ciphertext here. */
import { and, asc, eq, gt } from 'drizzle-orm';
import type { Db, Tx } from '../../platform/db.ts';
import { clients } from '../clients/table.ts';
import { webhooks } from './table.ts';

export type WebhookRow = Omit<typeof webhooks.$inferSelect, 'secret'>;
export type NewWebhookRow = typeof webhooks.$inferInsert;

const { id, clientId, url, createdAt } = webhooks;
const shown = { id, clientId, url, createdAt };

/** Whoever adds one to a client waits here, so that the count holds. */
export async function countUnderLock(tx: Tx, client: number): Promise<number> {
  await tx.select({ id: clients.id }).from(clients).where(eq(clients.id, client)).for('no key update');
  return tx.$count(webhooks, eq(webhooks.clientId, client));
}

export async function insert(tx: Tx, webhook: NewWebhookRow): Promise<void> {
  await tx.insert(webhooks).values(webhook);
}

export async function list(db: Db, client: number): Promise<WebhookRow[]> {
  return db.select(shown).from(webhooks).where(eq(clientId, client)).orderBy(asc(createdAt), asc(id));
}

const one = (client: number, webhookId: string) => and(eq(id, webhookId), eq(clientId, client));

export async function find(db: Db, client: number, webhookId: string): Promise<WebhookRow | null> {
  const [row] = await db.select(shown).from(webhooks).where(one(client, webhookId));
  return row ?? null;
}

/** False when there is none. */
export async function remove(tx: Tx, client: number, webhookId: string): Promise<boolean> {
  const removed = await tx.delete(webhooks).where(one(client, webhookId)).returning({ id });
  return removed.length > 0;
}

export async function secretOf(db: Db, webhookId: string): Promise<Buffer | null> {
  const [row] = await db.select({ secret: webhooks.secret }).from(webhooks).where(eq(id, webhookId));
  return row?.secret ?? null;
}

const pageSize = 100;

/** The next secrets of all clients, in the order of the webhooks' ids. */
export async function ciphertextsAfter(db: Db, after: string | null): Promise<{ id: string; ciphertext: Buffer }[]> {
  return db
    .select({ id, ciphertext: webhooks.secret })
    .from(webhooks)
    .where(after === null ? undefined : gt(id, after))
    .orderBy(asc(id))
    .limit(pageSize);
}

/** Unless another secret took its place meanwhile. */
export async function replaceCiphertext(db: Db, webhookId: string, old: Buffer, ciphertext: Buffer): Promise<void> {
  await db
    .update(webhooks)
    .set({ secret: ciphertext })
    .where(and(eq(id, webhookId), eq(webhooks.secret, old)));
}
