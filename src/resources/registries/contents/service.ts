/**
 * Repositories, artifacts and tags: clients push them to the host, and list and delete them here. A deletion is a row for
 * the region's worker; its request is answered when the worker has deleted the contents on the host.
 */
import { randomUUID } from 'node:crypto';
import type { Change } from '../../../audit/audit.ts';
import { type RequestContext, type Scope, whileWaiting } from '../../../authz/actor.ts';
import { withZone } from '../../../platform/clock.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import { pageInGroups, type PageInGroups } from '../../../platform/large-rows.ts';
import { type Collection, requireFound, type ServiceDeps, toCollection } from '../../service-kit.ts';
import type { PageQuery } from '../../store-kit.ts';
import type { Artifact, Repository } from '../schema.ts';
import { find, hasRemoval, hasRemovalOf, insertRemoval, lock } from '../store.ts';
import { waitUntilDone } from '../wait-until-done.ts';
import * as store from './store.ts';
import type { ArtifactRow, TagRow } from './store.ts';
import { registryArtifacts, registryRepositories, registryTags } from './table.ts';

type RegistryContentsDeps = Pick<ServiceDeps, 'db' | 'tasks' | 'idempotency'>;

export type RegistryContents = ReturnType<typeof createRegistryContents>;

/** A repository, an artifact of it, or a tag of that. */
interface Part {
  repository: string;
  digest?: string;
  tag?: string;
}

/** The date that clients of the API read as never. */
const never = '0001-01-01T00:00:00Z';

export function createRegistryContents({ db, tasks, idempotency }: RegistryContentsDeps) {
  const requireRegistry = async (scope: Scope, id: number) => requireFound(await find(db, scope, id), 'registry', id);

  const requireRepository = async (on: Db | Tx, registryId: number, name: string) =>
    requireFound(await store.findRepository(on, registryId, name), 'repository', name);

  /** For the audit log: the row that the worker will delete. @throws ClientError 404 */
  const deletionOf = async (tx: Tx, registryId: number, { repository: name, digest, tag }: Part): Promise<Change> => {
    const repository = await requireRepository(tx, registryId, name);
    if (digest === undefined) return store.deletionOf(registryRepositories, repository);
    const artifact = requireFound(await store.findArtifact(tx, repository.id, digest), 'artifact', digest);
    if (tag === undefined) return store.deletionOf(registryArtifacts, artifact);
    return store.deletionOf(registryTags, requireFound(await store.findTag(tx, artifact.id, tag), 'tag', tag));
  };

  return {
    async listRepositories(scope: Scope, registryId: number, page: PageQuery): Promise<Collection<Repository>> {
      await requireRegistry(scope, registryId);
      return toCollection(await store.listRepositories(db, registryId, page), (row) => ({
        id: row.id,
        name: row.name,
        registry_id: registryId,
        artifact_count: row.artifactCount,
        pull_count: row.pullCount,
        created_at: withZone(row.createdAt),
        updated_at: withZone(row.updatedAt),
      }));
    },

    async listArtifacts(
      scope: Scope,
      registryId: number,
      repository: string,
      page: PageQuery,
    ): Promise<PageInGroups<Artifact>> {
      await requireRegistry(scope, registryId);
      const { id } = await requireRepository(db, registryId, repository);
      const read = (ids: number[]) => store.findArtifacts(db, ids);
      return pageInGroups(await store.listArtifacts(db, id, page), read, (row) => toResponse(row, registryId));
    },

    async delete(context: RequestContext, scope: Scope, registryId: number, part: Part): Promise<void> {
      const id = randomUUID();
      const { repository, digest = null, tag = null } = part;
      await idempotency.auditedTransaction(db, context, async (tx, act) => {
        requireFound(await lock(tx, scope, registryId), 'registry', registryId);
        const deletion = await deletionOf(tx, registryId, part);
        // A retry records no second deletion, but has its own removal: the contents may have been pushed again.
        if (!(await hasRemovalOf(tx, registryId, repository, digest, tag))) act.changes = [deletion];
        await insertRemoval(tx, { id, registryId, repository, digest, tag });
        const key = { resource: 'registry', id: String(registryId), regionId: scope.regionId };
        await tasks.requestReconcile(tx, key, context.actor);
      });
      await whileWaiting(context, () => waitUntilDone(async () => !(await hasRemoval(db, id))));
    },
  };
}

function toResponse(row: ArtifactRow & { tags: TagRow[] }, registryId: number): Artifact {
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
