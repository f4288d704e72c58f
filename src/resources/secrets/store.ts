/** SQL of secrets. Payloads are ciphertext here, and no read but `payloads` and `payloadsAfter` fetches them. */
import { and, asc, eq, getTableColumns, gt, inArray } from 'drizzle-orm';
import type { Uses } from '../../errors/catalogue.ts';
import { prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { ListSecrets, SecretKind } from './schema.ts';
import { secrets } from './table.ts';

export type NewSecret = typeof secrets.$inferInsert;
/** A secret without what is secret of it. */
export type SecretRow = Omit<typeof secrets.$inferSelect, 'payload'>;

/** The project and region that a request is about. */
export interface Where {
  projectId: number;
  regionId: number;
}

const { payload: _payload, ...shown } = getTableColumns(secrets);

const inside = (where: Where) => and(eq(secrets.projectId, where.projectId), eq(secrets.regionId, where.regionId));

export async function view(db: Db, where: Where, id: string): Promise<SecretRow | null> {
  const [row] = await db
    .select(shown)
    .from(secrets)
    .where(and(eq(secrets.id, id), inside(where)));
  return row ?? null;
}

export async function list(db: Db, where: Where, filter: ListSecrets): Promise<{ count: number; rows: SecretRow[] }> {
  const [rows, count] = await Promise.all([
    db
      .select(shown)
      .from(secrets)
      .where(inside(where))
      .orderBy(asc(secrets.createdAt), asc(secrets.id))
      .limit(filter.limit ?? 1000)
      .offset(filter.offset ?? 0),
    db.$count(secrets, inside(where)),
  ]);
  return { count, rows };
}

const holdClient = prepared<{ client_id: number }>(
  'secret_hold_project',
  'select client_id from projects where id = $1 and deleted_at is null for key share',
);

/** Keeps the project from being deleted until this transaction ends. False when it is deleted already. */
export async function holdProject(tx: Tx, projectId: number): Promise<boolean> {
  return (await holdClient(tx, projectId)).length > 0;
}

export async function insert(tx: Tx, secret: NewSecret): Promise<void> {
  await tx.insert(secrets).values(secret);
}

/** Takes the row for its deletion: waits for those that hold it for use, and they see the deletion or its refusal. */
export async function lock(tx: Tx, where: Where, id: string): Promise<SecretRow | null> {
  const [row] = await tx
    .select(shown)
    .from(secrets)
    .where(and(eq(secrets.id, id), inside(where)))
    .for('update');
  return row ?? null;
}

export async function remove(tx: Tx, id: string): Promise<void> {
  await tx.delete(secrets).where(eq(secrets.id, id));
}

export type HeldSecret = Pick<SecretRow, 'id' | 'secretType' | 'kind' | 'expiration' | 'notAfter'>;

/** Those of the ids that are in the project and region; they cannot be deleted until this transaction ends. */
export async function hold(tx: Tx, where: Where, ids: string[]): Promise<HeldSecret[]> {
  const { id, secretType, kind, expiration, notAfter } = secrets;
  return tx
    .select({ id, secretType, kind, expiration, notAfter })
    .from(secrets)
    .where(and(inArray(secrets.id, ids), inside(where)))
    .orderBy(asc(secrets.id))
    .for('key share');
}

export interface Payload {
  id: string;
  kind: SecretKind | null;
  payload: Buffer;
}

const payload = { id: secrets.id, kind: secrets.kind, payload: secrets.payload };

export async function payloads(on: Db | Tx, ids: string[]): Promise<Payload[]> {
  return on.select(payload).from(secrets).where(inArray(secrets.id, ids));
}

const pageSize = 100;

/** The next secrets of all projects and regions, in the order of their ids. */
export async function payloadsAfter(db: Db, id: string | null): Promise<Payload[]> {
  return db
    .select(payload)
    .from(secrets)
    .where(id === null ? undefined : gt(secrets.id, id))
    .orderBy(asc(secrets.id))
    .limit(pageSize);
}

export async function replacePayload(db: Db, id: string, ciphertext: Buffer): Promise<void> {
  await db.update(secrets).set({ payload: ciphertext }).where(eq(secrets.id, id));
}

const readUsesOfProject = prepared<Uses>(
  'secret_uses_of_project',
  `select 'secret' as kind, count(*) as count, (array_agg(id order by created_at, id))[1:3] as ids
   from secrets where project_id = $1 having count(*) > 0`,
);

export async function usesOfProject(tx: Tx, projectId: number): Promise<Uses[]> {
  return readUsesOfProject(tx, projectId);
}

/** What the rows use of the quota (quota/audit.ts). */
export const usageOfRows = `
  select p.client_id, s.region_id, 'secret_count', count(*)
  from secrets s join projects p on p.id = s.project_id group by 1, 2`;
