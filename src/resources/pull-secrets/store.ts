/** SQL of pull secrets. Passwords are ciphertext here, and no read but `withPassword` and `ciphertextsAfter` fetches them. */
import { and, asc, eq, getTableColumns, gt } from 'drizzle-orm';
import type { Uses } from '../../errors/catalogue.ts';
import { prepared } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { ListPullSecrets } from './schema.ts';
import { pullSecrets } from './table.ts';

export type WholeRow = typeof pullSecrets.$inferSelect;
/** A pull secret without what is secret of it. */
export type PullSecretRow = Omit<WholeRow, 'password'>;

/** The project and region that a request is about. */
export interface Where {
  projectId: number;
  regionId: number;
}

const { password: _password, ...shown } = getTableColumns(pullSecrets);

const inside = (where: Where) =>
  and(eq(pullSecrets.projectId, where.projectId), eq(pullSecrets.regionId, where.regionId));
const named = (where: Where, name: string) => and(inside(where), eq(pullSecrets.name, name));

export async function view(db: Db, where: Where, name: string): Promise<PullSecretRow | null> {
  const [row] = await db.select(shown).from(pullSecrets).where(named(where, name));
  return row ?? null;
}

export async function withPassword(on: Db | Tx, where: Where, name: string): Promise<WholeRow | null> {
  const [row] = await on.select().from(pullSecrets).where(named(where, name));
  return row ?? null;
}

export async function list(
  db: Db,
  where: Where,
  page: ListPullSecrets,
): Promise<{ count: number; rows: PullSecretRow[] }> {
  const [rows, count] = await Promise.all([
    db
      .select(shown)
      .from(pullSecrets)
      .where(inside(where))
      .orderBy(asc(pullSecrets.name))
      .limit(page.limit ?? 1000)
      .offset(page.offset ?? 0),
    db.$count(pullSecrets, inside(where)),
  ]);
  return { count, rows };
}

const holdClient = prepared<{ client_id: number }>(
  'pull_secret_hold_project',
  'select client_id from projects where id = $1 and deleted_at is null for key share',
);

/** Keeps the project from being deleted until this transaction ends. False when it is deleted already. */
export async function holdProject(tx: Tx, projectId: number): Promise<boolean> {
  return (await holdClient(tx, projectId)).length > 0;
}

export async function insert(tx: Tx, secret: WholeRow): Promise<void> {
  await tx.insert(pullSecrets).values(secret);
}

export async function lock(tx: Tx, where: Where, name: string): Promise<WholeRow | null> {
  const [row] = await tx.select().from(pullSecrets).where(named(where, name)).for('update');
  return row ?? null;
}

export async function update(tx: Tx, id: string, changes: Partial<WholeRow>): Promise<void> {
  await tx.update(pullSecrets).set(changes).where(eq(pullSecrets.id, id));
}

/** Returns whether there was such a secret. */
export async function remove(tx: Tx, where: Where, name: string): Promise<boolean> {
  const removed = await tx.delete(pullSecrets).where(named(where, name)).returning({ id: pullSecrets.id });
  return removed.length > 0;
}

const pageSize = 100;

/** The next passwords of all projects and regions, in the order of the secrets' ids. */
export async function ciphertextsAfter(db: Db, id: string | null): Promise<{ id: string; ciphertext: Buffer }[]> {
  return db
    .select({ id: pullSecrets.id, ciphertext: pullSecrets.password })
    .from(pullSecrets)
    .where(id === null ? undefined : gt(pullSecrets.id, id))
    .orderBy(asc(pullSecrets.id))
    .limit(pageSize);
}

/** Unless another password took its place meanwhile. */
export async function replaceCiphertext(db: Db, id: string, old: Buffer, ciphertext: Buffer): Promise<void> {
  const same = and(eq(pullSecrets.id, id), eq(pullSecrets.password, old));
  await db.update(pullSecrets).set({ password: ciphertext }).where(same);
}

const readUsesOfProject = prepared<Uses>(
  'pull_secret_uses_of_project',
  `select 'pull secret' as kind, count(*) as count, (array_agg(name order by name))[1:3] as ids
   from pull_secrets where project_id = $1 having count(*) > 0`,
);

export async function usesOfProject(tx: Tx, projectId: number): Promise<Uses[]> {
  return readUsesOfProject(tx, projectId);
}
