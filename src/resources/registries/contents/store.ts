/** SQL of what registries hold: repositories, artifacts, tags, blobs, and the events that told of them. */
import { and, asc, eq, inArray, sql } from 'drizzle-orm';
import { prepared } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type { SizedRow } from '../../../platform/large-rows.ts';
import { registries } from '../table.ts';
import { registryArtifacts, registryBlobs, registryRepositories, registryTags } from './table.ts';

export type RepositoryRow = typeof registryRepositories.$inferSelect;
export type ArtifactRow = typeof registryArtifacts.$inferSelect;
export type TagRow = typeof registryTags.$inferSelect;

export async function repositories(db: Db, registryId: number): Promise<(RepositoryRow & { artifactCount: number })[]> {
  const rows = await db
    .select({
      repository: registryRepositories,
      artifactCount: sql<number>`(select count(*) from registry_artifacts a where a.repository_id = registry_repositories.id)`,
    })
    .from(registryRepositories)
    .where(eq(registryRepositories.registryId, registryId))
    .orderBy(asc(sql`${registryRepositories.name} collate "C"`));
  return rows.map(({ repository, artifactCount }) => ({ ...repository, artifactCount }));
}

export async function repository(on: Db | Tx, registryId: number, name: string): Promise<RepositoryRow | null> {
  const [row] = await on
    .select()
    .from(registryRepositories)
    .where(and(eq(registryRepositories.registryId, registryId), eq(registryRepositories.name, name)));
  return row ?? null;
}

/** The newest first. There is no limit to artifacts and their tags, so they are read apart. */
export async function artifactSizes(db: Db, repositoryId: number): Promise<SizedRow<number>[]> {
  const bytes = sql<number>`(
    select 256 * (1 + count(*)) from registry_tags t where t.artifact_id = registry_artifacts.id)`;
  return db
    .select({ id: registryArtifacts.id, bytes })
    .from(registryArtifacts)
    .where(eq(registryArtifacts.repositoryId, repositoryId))
    .orderBy(sql`${registryArtifacts.pushedAt} desc`, sql`${registryArtifacts.id} desc`);
}

export async function artifacts(db: Db, ids: number[]): Promise<(ArtifactRow & { tags: TagRow[] })[]> {
  const [rows, tags] = await Promise.all([
    db.select().from(registryArtifacts).where(inArray(registryArtifacts.id, ids)),
    db
      .select()
      .from(registryTags)
      .where(inArray(registryTags.artifactId, ids))
      .orderBy(asc(sql`${registryTags.name} collate "C"`)),
  ]);
  const tagsOf = Map.groupBy(tags, (tag) => tag.artifactId);
  return rows.map((row) => ({ ...row, tags: tagsOf.get(row.id) ?? [] }));
}

export async function artifact(on: Db | Tx, repositoryId: number, digest: string): Promise<ArtifactRow | null> {
  const [row] = await on
    .select()
    .from(registryArtifacts)
    .where(and(eq(registryArtifacts.repositoryId, repositoryId), eq(registryArtifacts.digest, digest)));
  return row ?? null;
}

export async function tag(on: Db | Tx, artifactId: number, name: string): Promise<TagRow | null> {
  const [row] = await on
    .select()
    .from(registryTags)
    .where(and(eq(registryTags.artifactId, artifactId), eq(registryTags.name, name)));
  return row ?? null;
}

/** Forgets a repository, an artifact with its tags, or a tag. */
export async function forget(
  tx: Tx,
  registryId: number,
  name: string,
  digest: string | null,
  tagName: string | null,
): Promise<void> {
  await tx.update(registries).set({ removedAt: sql`now()` }).where(eq(registries.id, registryId));
  const found = await repository(tx, registryId, name);
  if (!found) return;
  const { id } = found;
  if (digest === null) {
    await tx.delete(registryRepositories).where(eq(registryRepositories.id, id));
    return;
  }
  const ofDigest = and(eq(registryArtifacts.repositoryId, id), eq(registryArtifacts.digest, digest));
  if (tagName === null) await tx.delete(registryArtifacts).where(ofDigest);
  else await tx.delete(registryTags).where(and(eq(registryTags.repositoryId, id), eq(registryTags.name, tagName)));
  await tx.update(registryRepositories).set({ updatedAt: sql`now()` }).where(eq(registryRepositories.id, id));
}

const takeEvents = prepared<{ id: string }>(
  'registry_events_take',
  `insert into registry_events (id, seen_at) select id, now() from unnest($1::text[]) as id
   on conflict do nothing returning id`,
);

/** Those of the events that were not taken in before. */
export async function newEvents(tx: Tx, ids: string[]): Promise<Set<string>> {
  return new Set((await takeEvents(tx, ids)).map(({ id }) => id));
}

const forgetOld = prepared(
  'registry_events_forget',
  `delete from registry_events where seen_at < now() - interval '2 days'`,
);
export const forgetEvents = (db: Db) => forgetOld(db);

const upsertRepository = prepared<{ id: number }>(
  'registry_repository_put',
  `insert into registry_repositories (registry_id, name, created_at, updated_at, seen_at) values ($1, $2, $3, $3, now())
   on conflict (registry_id, name) do update set updated_at = greatest(registry_repositories.updated_at, $3), seen_at = now()
   returning id`,
);
const upsertArtifact = prepared<{ id: number }>(
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

export interface PushedManifest {
  repository: string;
  digest: string;
  size: number;
  tag: string | null;
  at: Date;
}

export async function putManifest(tx: Tx, registryId: number, pushed: PushedManifest): Promise<void> {
  const { repository, digest, size, at } = pushed;
  const [{ id }] = (await upsertRepository(tx, registryId, repository, at)) as [{ id: number }];
  const [artifact] = (await upsertArtifact(tx, id, digest, size, at)) as [{ id: number }];
  if (pushed.tag !== null) await upsertTag(tx, id, artifact.id, pushed.tag, at);
}

const upsertBlob = prepared(
  'registry_blob_put',
  `with old as (select size from registry_blobs where registry_id = $1 and digest = $2),
   put as (
     insert into registry_blobs (registry_id, digest, size, seen_at) values ($1, $2, $3, now())
     on conflict (registry_id, digest) do update set size = excluded.size, seen_at = now() returning size)
   update registries set storage_used = storage_used + put.size - coalesce((select size from old), 0)
   from put where id = $1`,
);

/** Counts a blob, once. Lock the registry's row first. */
export async function putBlob(tx: Tx, registryId: number, digest: string, size: number): Promise<void> {
  await upsertBlob(tx, registryId, digest, size);
}

/** In the place of a digest: what a registry holds in uploads that nobody goes on with. */
const uploads = 'uploads';

/** The registries that unfinished uploads are counted for, with their bytes. */
export async function uploadsCounted(db: Db, regionIds: number[]): Promise<Map<number, number>> {
  const rows = await db
    .select({ registryId: registryBlobs.registryId, size: registryBlobs.size })
    .from(registryBlobs)
    .innerJoin(registries, eq(registries.id, registryBlobs.registryId))
    .where(and(eq(registryBlobs.digest, uploads), inArray(registries.regionId, regionIds)));
  return new Map(rows.map(({ registryId, size }) => [registryId, size]));
}

/** Counts unfinished uploads. Lock the registry's row first. */
export async function putUploads(tx: Tx, registryId: number, bytes: number): Promise<void> {
  await upsertBlob(tx, registryId, uploads, bytes);
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

export async function putPull(
  tx: Tx,
  registryId: number,
  pull: { repository: string; digest: string; tag: string | null; at: Date },
): Promise<void> {
  await countPull(tx, registryId, pull.repository, pull.digest, pull.at, pull.tag);
}

export interface SeenRepository {
  name: string;
  manifests: { digest: string; size: number; pushedAt: Date }[];
  tags: { name: string; digest: string; pushedAt: Date }[];
}

/** The database's clock, by which `seen_at` is written. */
export async function now(db: Db): Promise<Date> {
  const { rows } = await db.$client.query<{ now: Date }>('select now()');
  return rows[0]!.now;
}

/**
 * Makes the rows of a registry equal to what was seen of it in a look that began at `began`. Lock its row first. When
 * something was removed since, the look may have seen that: then it brings nothing, and the next one does.
 */
export async function putSeen(
  tx: Tx,
  { id: registryId, removedAt }: Pick<typeof registries.$inferSelect, 'id' | 'removedAt'>,
  seen: { repositories: SeenRepository[]; blobs: Map<string, number> },
  began: Date,
): Promise<void> {
  await putSeenBlobs(tx, registryId, seen.blobs, began);
  const names = seen.repositories.map(({ name }) => name);
  await tx.$client.query(
    'delete from registry_repositories where registry_id = $1 and name <> all($2) and seen_at < $3',
    [registryId, names, began],
  );
  const isTrue = removedAt === null || removedAt < began;
  const told = seen.repositories.filter(({ manifests }) => isTrue && manifests.length > 0);
  for (const each of told) await putSeenRepository(tx, registryId, each, began);
  const rows = await tx
    .select()
    .from(registryRepositories)
    .where(and(eq(registryRepositories.registryId, registryId), inArray(registryRepositories.name, names)));
  for (const { id, name } of rows) {
    await forgetUnseen(tx, id, seen.repositories.find((each) => each.name === name)!, began);
  }
}

async function putSeenBlobs(tx: Tx, registryId: number, blobs: Map<string, number>, began: Date): Promise<void> {
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
 * What is there already keeps what events said of it. Nothing is inserted only to meet a conflict: each try would take
 * a number of the sequence, and a look tries everything.
 */
async function putSeenRepository(tx: Tx, registryId: number, seen: SeenRepository, began: Date): Promise<void> {
  const { name, manifests, tags } = seen;
  const first = manifests.reduce((least, { pushedAt }) => (pushedAt < least ? pushedAt : least), new Date());
  if (!(await repository(tx, registryId, name))) {
    await tx
      .insert(registryRepositories)
      .values({ registryId, name, createdAt: first, updatedAt: first, seenAt: began });
  }
  const { id } = (await repository(tx, registryId, name))!;
  const ofManifests = [id, manifests.map((each) => each.digest), manifests.map((each) => each.size)];
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
  const ofTags = [
    id,
    tags.map((each) => each.name),
    tags.map((each) => each.digest),
    tags.map((each) => each.pushedAt),
    began,
  ];
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

async function forgetUnseen(tx: Tx, repositoryId: number, seen: SeenRepository, began: Date): Promise<void> {
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
