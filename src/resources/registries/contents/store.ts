/** SQL of the contents of registries: repositories, artifacts, tags, blobs, and the processed events. */
import { and, desc, eq, getTableColumns, getTableName, inArray, sql } from 'drizzle-orm';
import type { Change } from '../../../audit/audit.ts';
import {
  columnsOf,
  type Db,
  prepared,
  preparedColumn,
  preparedExists,
  preparedValue,
  type Tx,
} from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import { bytewise, firstRow, type Found, type PageQuery, pageReader, toJson } from '../../store-kit.ts';
import { registries } from '../table.ts';
import { registryArtifacts, registryBlobs, registryRepositories, registryTags } from './table.ts';

type RepositoryRow = typeof registryRepositories.$inferSelect;
type RepositoryView = RepositoryRow & { artifactCount: number };
export type ArtifactRow = typeof registryArtifacts.$inferSelect;
export type TagRow = typeof registryTags.$inferSelect;

const artifactCount = sql<number>`(
  select count(*) from registry_artifacts a where a.repository_id = registry_repositories.id)`;
const readRepositories = pageReader<RepositoryView>(registryRepositories, {
  columns: { ...getTableColumns(registryRepositories), artifactCount },
});

/** By name. */
export async function listRepositories(db: Db, registryId: number, page: PageQuery): Promise<Found<RepositoryView>> {
  const where = eq(registryRepositories.registryId, registryId);
  return readRepositories(db, { where, order: [bytewise(registryRepositories.name)], page });
}

export function findRepository(on: Db | Tx, registryId: number, name: string): Promise<RepositoryRow | null> {
  const isNamed = and(eq(registryRepositories.registryId, registryId), eq(registryRepositories.name, name));
  return firstRow(on.select().from(registryRepositories).where(isNamed));
}

const bytes = sql<number>`(
  select 256 * (1 + count(*)) from registry_tags t where t.artifact_id = registry_artifacts.id)`;
const readSizes = pageReader<SizedRow<number>>(registryArtifacts, { columns: { id: registryArtifacts.id, bytes } });

/** Newest first. An artifact may have any number of tags, so the rows are read separately. */
export async function listArtifacts(db: Db, repositoryId: number, page: PageQuery): Promise<Found<SizedRow<number>>> {
  const where = eq(registryArtifacts.repositoryId, repositoryId);
  return readSizes(db, { where, order: [desc(registryArtifacts.pushedAt), desc(registryArtifacts.id)], page });
}

export async function findArtifacts(db: Db, ids: number[]): Promise<(ArtifactRow & { tags: TagRow[] })[]> {
  const [rows, tags] = await Promise.all([
    db.select().from(registryArtifacts).where(inArray(registryArtifacts.id, ids)),
    db.select().from(registryTags).where(inArray(registryTags.artifactId, ids)).orderBy(bytewise(registryTags.name)),
  ]);
  const tagsOf = Map.groupBy(tags, (tag) => tag.artifactId);
  return rows.map((row) => ({ ...row, tags: tagsOf.get(row.id) ?? [] }));
}

const isArtifact = (repositoryId: number, digest: string) =>
  and(eq(registryArtifacts.repositoryId, repositoryId), eq(registryArtifacts.digest, digest));

export const findArtifact = (on: Db | Tx, repositoryId: number, digest: string) =>
  firstRow(on.select().from(registryArtifacts).where(isArtifact(repositoryId, digest)));

export function findTag(on: Db | Tx, artifactId: number, name: string): Promise<TagRow | null> {
  const isNamed = and(eq(registryTags.artifactId, artifactId), eq(registryTags.name, name));
  return firstRow(on.select().from(registryTags).where(isNamed));
}

type ContentsTable = typeof registryRepositories | typeof registryArtifacts | typeof registryTags;

/** The deletion of a row, for the audit log. */
export function deletionOf<T extends ContentsTable>(table: T, row: T['$inferSelect']): Change {
  return { table: getTableName(table), id: row.id, before: toJson(table, [row])[0]!, after: null };
}

/** Removals are among the events, under ids of their own. */
const removalId = (registryId: number, repository: string, digest: string | null, tag: string | null) =>
  ['removal', registryId, repository, digest, tag].filter((part) => part !== null).join(' ');

const putRemoval = prepared(
  'registry_removal_put',
  `insert into registry_events (id, seen_at) values ($1, now()) on conflict (id) do update set seen_at = now()`,
);

/** Records that the worker has removed contents from the host, for `wasRemoved`. */
export async function noteRemoval(tx: Tx, ...removal: Parameters<typeof removalId>): Promise<void> {
  await putRemoval(tx, removalId(...removal));
}

const findRemoval = preparedExists<[ids: string[], since: Date], Tx>(
  'registry_removal_since',
  'select from registry_events where id = any($1) and seen_at > $2 limit 1',
);

/**
 * Whether the contents of a push were removed after it, so that its late event must not restore them. If the clock of the
 * host is behind, this may be wrong for a later push, which the next scan then finds.
 */
export function wasRemoved(tx: Tx, registryId: number, pushed: Omit<PushedManifest, 'size'>): Promise<boolean> {
  const { repository, digest, tag, at } = pushed;
  const ids = [removalId(registryId, repository, null, null), removalId(registryId, repository, digest, null)];
  return findRemoval(tx, tag === null ? ids : [...ids, removalId(registryId, repository, digest, tag)], at);
}

/** Removes the rows of a repository, an artifact with its tags, or a tag unless it is one of another artifact by now. */
export async function remove(
  tx: Tx,
  registryId: number,
  name: string,
  digest: string | null,
  tagName: string | null,
): Promise<void> {
  await tx.update(registries).set({ removedAt: sql`now()` }).where(eq(registries.id, registryId));
  const found = await findRepository(tx, registryId, name);
  if (!found) return;
  const { id } = found;
  if (digest === null) {
    await tx.delete(registryRepositories).where(eq(registryRepositories.id, id));
    return;
  }
  if (tagName === null) await tx.delete(registryArtifacts).where(isArtifact(id, digest));
  else {
    const artifact = tx.select({ id: registryArtifacts.id }).from(registryArtifacts).where(isArtifact(id, digest));
    await tx
      .delete(registryTags)
      .where(and(inArray(registryTags.artifactId, artifact), eq(registryTags.name, tagName)));
  }
  await tx.update(registryRepositories).set({ updatedAt: sql`now()` }).where(eq(registryRepositories.id, id));
}

const takeEvents = preparedColumn<string>(
  'registry_events_take',
  `insert into registry_events (id, seen_at) select id, now() from unnest($1::text[]) as id
   on conflict do nothing returning id`,
);

/** Records the events. Returns the ids of those that were not processed before. */
export async function takeNewEvents(tx: Tx, ids: string[]): Promise<Set<string>> {
  return new Set(await takeEvents(tx, ids));
}

export const deleteOldEvents = prepared<object, [], Db>(
  'registry_events_forget',
  `delete from registry_events where seen_at < now() - interval '2 days'`,
);

const upsertRepository = preparedValue<number>(
  'registry_repository_put',
  `insert into registry_repositories (registry_id, name, created_at, updated_at, seen_at) values ($1, $2, $3, $3, now())
   on conflict (registry_id, name) do update set updated_at = greatest(registry_repositories.updated_at, $3), seen_at = now()
   returning id`,
);
const upsertArtifact = preparedValue<number>(
  'registry_artifact_put',
  `insert into registry_artifacts (repository_id, digest, size, pushed_at, seen_at) values ($1, $2, $3, $4, now())
   on conflict (repository_id, digest) do update set size = $3, seen_at = now(),
     pushed_at = greatest(registry_artifacts.pushed_at, $4)
   returning id`,
);
const upsertTag = prepared(
  'registry_tag_put',
  `insert into registry_tags (repository_id, artifact_id, name, pushed_at, seen_at) values ($1, $2, $3, $4, now())
   on conflict (repository_id, name) do update set artifact_id = $2, pushed_at = $4, seen_at = now()
   where registry_tags.pushed_at <= $4`,
);

const readSizesOf = prepared<
  { digest: string; size: number },
  [registryId: number, name: string, digests: string[]],
  Tx
>(
  'registry_artifact_sizes',
  `select a.digest, a.size from registry_repositories p join registry_artifacts a on a.repository_id = p.id
   where p.registry_id = $1 and p.name = $2 and a.digest = any($3)`,
);

/** The sizes of the artifacts of a repository among these digests. */
export async function sizesOfArtifacts(
  tx: Tx,
  registryId: number,
  repository: string,
  digests: string[],
): Promise<Map<string, number>> {
  const rows = await readSizesOf(tx, registryId, repository, digests);
  return new Map(rows.map(({ digest, size }) => [digest, size]));
}

interface PushedManifest {
  repository: string;
  digest: string;
  size: number;
  tag: string | null;
  at: Date;
}

/** Records a push. A tag that a later push has set is unchanged. */
export async function putManifest(tx: Tx, registryId: number, pushed: PushedManifest): Promise<void> {
  const { repository, digest, size, at } = pushed;
  const id = await upsertRepository(tx, registryId, repository, at);
  const artifactId = await upsertArtifact(tx, id, digest, size, at);
  if (pushed.tag !== null) await upsertTag(tx, id, artifactId, pushed.tag, at);
}

/** Counts a blob once. Lock the registry first. */
export const putBlob = prepared<object, [registryId: number, digest: string, size: number], Tx>(
  'registry_blob_put',
  `with old as (select size from registry_blobs where registry_id = $1 and digest = $2),
   put as (
     insert into registry_blobs (registry_id, digest, size, seen_at) values ($1, $2, $3, now())
     on conflict (registry_id, digest) do update set size = excluded.size, seen_at = now() returning size)
   update registries set storage_used = storage_used + put.size - coalesce((select size from old), 0)
   from put where id = $1`,
);

/** Instead of a digest: the bytes of a registry's abandoned uploads. */
const uploads = 'uploads';

/** The bytes of abandoned uploads, by registry. */
export async function findUploads(db: Db, regionIds: number[]): Promise<Map<number, number>> {
  const rows = await db
    .select({ registryId: registryBlobs.registryId, size: registryBlobs.size })
    .from(registryBlobs)
    .innerJoin(registries, eq(registries.id, registryBlobs.registryId))
    .where(and(eq(registryBlobs.digest, uploads), inArray(registries.regionId, regionIds)));
  return new Map(rows.map(({ registryId, size }) => [registryId, size]));
}

/** Records the bytes of abandoned uploads. Lock the registry first. */
export async function putUploads(tx: Tx, registryId: number, bytes: number): Promise<void> {
  await putBlob(tx, registryId, uploads, bytes);
  if (bytes > 0) return;
  await tx
    .delete(registryBlobs)
    .where(and(eq(registryBlobs.registryId, registryId), eq(registryBlobs.digest, uploads)));
}

const countPull = prepared(
  'registry_pull',
  `with pulled as (
     update registry_repositories set pull_count = pull_count + 1 where registry_id = $1 and name = $2 returning id),
   artifact as (
     update registry_artifacts a set pulled_at = greatest(a.pulled_at, $4) from pulled p
     where a.repository_id = p.id and a.digest = $3)
   update registry_tags t set pulled_at = greatest(t.pulled_at, $4) from pulled p
   where t.repository_id = p.id and t.name = $5`,
);

/** Counts a pull. Contents without a row are ignored: the next scan finds them. */
export async function putPull(
  tx: Tx,
  registryId: number,
  pull: { repository: string; digest: string; tag: string | null; at: Date },
): Promise<void> {
  await countPull(tx, registryId, pull.repository, pull.digest, pull.at, pull.tag);
}

interface SeenRepository {
  name: string;
  manifests: { digest: string; size: number; pushedAt: Date }[];
  tags: { name: string; digest: string; pushedAt: Date }[];
}

/** The clock of the database, which `seen_at` uses. */
export async function now(db: Db): Promise<Date> {
  const { rows } = await db.$client.query<{ now: Date }>('select now()');
  return rows[0]!.now;
}

/**
 * Makes the rows of a registry equal to a scan of its storage that began at `began`. Lock the registry first. When
 * contents were removed since, the scan may still contain them: then it adds nothing, and the next scan does.
 */
export async function putScan(
  tx: Tx,
  { id: registryId, removedAt }: Pick<typeof registries.$inferSelect, 'id' | 'removedAt'>,
  seen: { repositories: SeenRepository[]; blobs: Map<string, number> },
  began: Date,
): Promise<void> {
  await putScannedBlobs(tx, registryId, seen.blobs, began);
  const names = seen.repositories.map(({ name }) => name);
  await tx.$client.query(
    'delete from registry_repositories where registry_id = $1 and name <> all($2) and seen_at < $3',
    [registryId, names, began],
  );
  const isCurrent = removedAt === null || removedAt < began;
  const pushed = seen.repositories.filter(({ manifests }) => isCurrent && manifests.length > 0);
  for (const each of pushed) await putScannedRepository(tx, registryId, each, began);
  const rows = await tx
    .select()
    .from(registryRepositories)
    .where(and(eq(registryRepositories.registryId, registryId), inArray(registryRepositories.name, names)));
  for (const { id, name } of rows) {
    await removeUnseen(tx, id, seen.repositories.find((each) => each.name === name)!, began);
  }
}

async function putScannedBlobs(tx: Tx, registryId: number, blobs: Map<string, number>, began: Date): Promise<void> {
  const digests = [...blobs.keys()];
  await tx.$client.query('delete from registry_blobs where registry_id = $1 and seen_at < $3 and digest <> all($2)', [
    registryId,
    [...digests, uploads],
    began,
  ]);
  await tx.$client.query(
    `insert into registry_blobs (registry_id, digest, size, seen_at)
     select $1, digest, size, $4 from unnest($2::text[], $3::bigint[]) as b (digest, size)
     on conflict (registry_id, digest) do update set size = excluded.size where registry_blobs.size <> excluded.size`,
    [registryId, digests, [...blobs.values()], began],
  );
  await tx.$client.query(
    `update registries r set storage_used = used.bytes
     from (select coalesce(sum(size), 0) as bytes from registry_blobs where registry_id = $1) used
     where r.id = $1 and r.storage_used <> used.bytes`,
    [registryId],
  );
}

/**
 * Existing rows keep what events recorded. No insert relies on `on conflict`: each attempt would consume a number of the
 * sequence, and a scan attempts every row.
 */
async function putScannedRepository(tx: Tx, registryId: number, seen: SeenRepository, began: Date): Promise<void> {
  const { name, manifests, tags } = seen;
  const first = manifests.reduce((least, { pushedAt }) => (pushedAt < least ? pushedAt : least), new Date());
  if (!(await findRepository(tx, registryId, name))) {
    await tx
      .insert(registryRepositories)
      .values({ registryId, name, createdAt: first, updatedAt: first, seenAt: began });
  }
  const { id } = (await findRepository(tx, registryId, name))!;
  const ofManifests = [id, ...columnsOf(manifests, 'digest', 'size')];
  await tx.$client.query(
    `update registry_artifacts a set size = m.size from unnest($2::text[], $3::bigint[]) as m (digest, size)
     where a.repository_id = $1 and a.digest = m.digest and a.size <> m.size`,
    ofManifests,
  );
  await tx.$client.query(
    `insert into registry_artifacts (repository_id, digest, size, pushed_at, seen_at)
     select $1, digest, size, pushed_at, $5 from unnest($2::text[], $3::bigint[], $4::timestamptz[]) as m (digest, size, pushed_at)
     where not exists (select from registry_artifacts a where a.repository_id = $1 and a.digest = m.digest)`,
    [...ofManifests, manifests.map((each) => each.pushedAt), began],
  );
  const seenTags = `unnest($2::text[], $3::text[], $4::timestamptz[]) as s (name, digest, pushed_at)
     join registry_artifacts a on a.repository_id = $1 and a.digest = s.digest`;
  const ofTags = [id, ...columnsOf(tags, 'name', 'digest', 'pushedAt'), began];
  await tx.$client.query(
    `update registry_tags t set artifact_id = a.id, pushed_at = s.pushed_at from ${seenTags}
     where t.repository_id = $1 and t.name = s.name and t.artifact_id <> a.id and t.seen_at < $5`,
    ofTags,
  );
  await tx.$client.query(
    `insert into registry_tags (repository_id, artifact_id, name, pushed_at, seen_at)
     select $1, a.id, s.name, s.pushed_at, $5 from ${seenTags}
     where not exists (select from registry_tags t where t.repository_id = $1 and t.name = s.name)`,
    ofTags,
  );
}

async function removeUnseen(tx: Tx, repositoryId: number, seen: SeenRepository, began: Date): Promise<void> {
  await tx.$client.query('delete from registry_tags where repository_id = $1 and name <> all($2) and seen_at < $3', [
    repositoryId,
    seen.tags.map(({ name }) => name),
    began,
  ]);
  await tx.$client.query(
    'delete from registry_artifacts where repository_id = $1 and digest <> all($2) and seen_at < $3',
    [repositoryId, seen.manifests.map(({ digest }) => digest), began],
  );
}
