/**
 * Repositories, artifacts and tags. They are pushed, not created; here they are looked at and deleted. A deletion is a
 * row for the region's worker, and is answered when the worker has done it on the host.
 */
import { randomUUID } from 'node:crypto';
import { whileWaiting } from '../../../authz/actor.ts';
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { notFound } from '../../../errors/catalogue.ts';
import type { Idempotency } from '../../../idempotency/idempotency.ts';
import { withZone } from '../../../platform/clock.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import { readInGroups } from '../../../platform/large-rows.ts';
import type { Groups } from '../../../platform/large-rows.ts';
import type { Tasks } from '../../../tasks/tasks.ts';
import type { Artifact, RepositoryCollection } from '../schema.ts';
import { hasRemoval, insertRemoval, load, lock } from '../store.ts';
import type { RegistryRow } from '../store.ts';
import { untilDone } from '../waiting.ts';
import * as store from './store.ts';
import type { ArtifactRow, TagRow } from './store.ts';

export interface RegistryContentsDeps {
  db: Db;
  tasks: Tasks;
  idempotency: Idempotency;
}

export type RegistryContents = ReturnType<typeof createRegistryContents>;

/** What clients of the API take for never. */
const never = '0001-01-01T00:00:00Z';

export function createRegistryContents({ db, tasks, idempotency }: RegistryContentsDeps) {
  const find = async (scope: Scope, id: number): Promise<RegistryRow> => {
    const registry = await load(db, id, scope);
    if (!registry || registry.deletedAt) throw notFound('registry', id);
    return registry;
  };

  const repositoryOf = async (on: Db | Tx, registryId: number, name: string) => {
    const found = await store.repository(on, registryId, name);
    if (!found) throw notFound('repository', name);
    return found;
  };

  const artifactOf = async (on: Db | Tx, registryId: number, name: string, digest: string) => {
    const found = await store.artifact(on, (await repositoryOf(on, registryId, name)).id, digest);
    if (!found) throw notFound('artifact', digest);
    return found;
  };

  const remove = async (
    context: RequestContext,
    scope: Scope,
    registryId: number,
    part: { repository: string; digest: string | null; tag: string | null },
  ): Promise<void> => {
    const id = randomUUID();
    await idempotency.auditedTransaction(db, context, async (tx) => {
      const registry = await lock(tx, registryId, scope);
      if (!registry || registry.deletedAt) throw notFound('registry', registryId);
      const { repository, digest, tag } = part;
      if (digest === null) await repositoryOf(tx, registryId, repository);
      else {
        const artifact = await artifactOf(tx, registryId, repository, digest);
        if (tag !== null && !(await store.tag(tx, artifact.id, tag))) throw notFound('tag', tag);
      }
      await insertRemoval(tx, { id, registryId, ...part });
      const key = { resource: 'registry', id: String(registryId), regionId: scope.regionId };
      await tasks.requestReconcile(tx, key, context.actor);
    });
    await whileWaiting(context, () => untilDone(async () => !(await hasRemoval(db, id))));
  };

  return {
    async listRepositories(scope: Scope, registryId: number): Promise<RepositoryCollection> {
      await find(scope, registryId);
      const rows = await store.repositories(db, registryId);
      const results = rows.map((row) => ({
        id: row.id,
        name: row.name,
        registry_id: registryId,
        artifact_count: row.artifactCount,
        pull_count: row.pullCount,
        created_at: withZone(row.createdAt),
        updated_at: withZone(row.updatedAt),
      }));
      return { count: results.length, results };
    },

    async listArtifacts(
      scope: Scope,
      registryId: number,
      repository: string,
    ): Promise<{ count: number; results: Groups<Artifact> }> {
      await find(scope, registryId);
      const rows = await store.artifactSizes(db, (await repositoryOf(db, registryId, repository)).id);
      const read = (ids: number[]) => store.artifacts(db, ids);
      return { count: rows.length, results: readInGroups(rows, read, (row) => present(row, registryId)) };
    },

    deleteRepository: (context: RequestContext, scope: Scope, registryId: number, repository: string) =>
      remove(context, scope, registryId, { repository, digest: null, tag: null }),

    deleteArtifact: (context: RequestContext, scope: Scope, registryId: number, repository: string, digest: string) =>
      remove(context, scope, registryId, { repository, digest, tag: null }),

    deleteTag(
      context: RequestContext,
      scope: Scope,
      registryId: number,
      part: { repository: string; digest: string; tag: string },
    ): Promise<void> {
      return remove(context, scope, registryId, part);
    },
  };
}

function present(row: ArtifactRow & { tags: TagRow[] }, registryId: number): Artifact {
  const times = ({ pushedAt, pulledAt }: { pushedAt: Date; pulledAt: Date | null }) => ({
    pushed_at: withZone(pushedAt),
    pulled_at: withZone(pulledAt) ?? never,
  });
  return {
    id: row.id,
    digest: row.digest,
    registry_id: registryId,
    repository_id: row.repositoryId,
    size: row.size,
    ...times(row),
    tags: row.tags.map((tag) => ({
      id: tag.id,
      name: tag.name,
      artifact_id: tag.artifactId,
      repository_id: tag.repositoryId,
      ...times(tag),
    })),
  };
}
