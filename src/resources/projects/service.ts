/** The rules of projects. A project is only a row, so every change is done with its transaction. */
import type { ClientScope, ProjectScope, RequestContext } from '../../authz/actor.ts';
import { ClientError } from '../../errors/catalogue.ts';
import { withZone } from '../../platform/clock.ts';
import type { Tx } from '../../platform/db.ts';
import type { ReferenceCaches } from '../../platform/reference-cache.ts';
import { globalRegion } from '../../quota/kinds.ts';
import {
  type Collection,
  type FindUses,
  orNameTaken,
  requireFound,
  requireOwnClient,
  requireUnused,
  type ServiceDeps,
  type TaskIds,
  toCollection,
} from '../service-kit.ts';
import type { CreateProject, ListProjects, Project, UpdateProject } from './schema.ts';
import * as store from './store.ts';
import type { NewProject, ProjectRow } from './store.ts';

interface ProjectsDeps extends ServiceDeps {
  caches: ReferenceCaches;
  /** One per kind of resource that belongs to projects: they depend on projects, so main wires it. */
  usedBy: FindUses<number>[];
}

export type Projects = ReturnType<typeof createProjects>;

export function createProjects(deps: ProjectsDeps) {
  const { db, clock, tasks, quota, idempotency, caches } = deps;

  const insert = async (tx: Tx, project: NewProject): Promise<ProjectRow> => {
    const row = await orTaken(store.insert(tx, project), project.name);
    await quota.reserve(tx, quotaScope(row), { project_count: 1 });
    return row;
  };

  const find = async (id: number): Promise<ProjectRow> => requireFound(await store.find(db, id), 'project', id);

  const change = async (
    context: RequestContext,
    id: number,
    changes: Pick<Partial<ProjectRow>, 'name' | 'description'>,
  ): Promise<Project> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      return toResponse(requireFound(await orTaken(store.update(tx, id, changes), changes.name), 'project', id));
    });

  return {
    /** The client of a project; null when it does not exist. Every request needs it, so it is cached. */
    clientOf: caches.cached((id: number) => store.findClient(db, id)),

    /** Creates the default project of a new client. Returns its id. */
    async createFirst(tx: Tx, clientId: number): Promise<number> {
      const project = { clientId, name: 'Default', description: null, isDefault: true, createdAt: clock.now() };
      return (await insert(tx, project)).id;
    },

    async create(context: RequestContext, scope: ClientScope, body: CreateProject): Promise<Project> {
      if (context.actor.projectIds) {
        throw new ClientError('Forbidden', 'the token is limited to certain projects and cannot create another one');
      }
      requireOwnClient(context.actor, body.client_id);
      return idempotency.auditedTransaction(db, context, async (tx, act) => {
        const project = await insert(tx, {
          clientId: scope.clientId,
          name: body.name,
          description: body.description ?? null,
          isDefault: false,
          createdAt: clock.now(),
        });
        act.projectId = project.id;
        return toResponse(project);
      });
    },

    async list(context: RequestContext, scope: ClientScope, filter: ListProjects): Promise<Collection<Project>> {
      return toCollection(await store.list(db, scope.clientId, context.actor.projectIds, filter), toResponse);
    },

    async get(scope: ProjectScope): Promise<Project> {
      return toResponse(await find(scope.projectId));
    },

    async update(context: RequestContext, scope: ProjectScope, body: UpdateProject): Promise<Project> {
      const { name, description } = body;
      if (name === undefined && description === undefined) return toResponse(await find(scope.projectId));
      return change(context, scope.projectId, body);
    },

    /** The deprecated form: an omitted description is cleared. */
    async replace(context: RequestContext, scope: ProjectScope, body: CreateProject): Promise<Project> {
      requireOwnClient(context.actor, body.client_id);
      return change(context, scope.projectId, { name: body.name, description: body.description ?? null });
    },

    async delete(context: RequestContext, scope: ProjectScope): Promise<TaskIds> {
      const id = scope.projectId;
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const project = requireFound(await store.lock(tx, id), 'project', id);
        if (project.isDefault) {
          throw new ClientError('Conflict', `project ${id} is the default project of its client; it cannot be deleted`);
        }
        await requireUnused(tx, 'project', id, deps.usedBy);
        await store.update(tx, id, { deletedAt: clock.now() });
        await caches.changed(tx);
        const taskId = await tasks.recordFinished(tx, context, {
          type: 'delete_project',
          // A project is in no region.
          key: { resource: 'project', id: String(id), regionId: null },
          projectId: id,
          generation: 1,
        });
        await quota.release(tx, quotaScope(project), { project_count: 1 });
        return { tasks: [taskId] };
      });
    },
  };
}

function orTaken<T>(write: Promise<T>, name: string | undefined): Promise<T> {
  return orNameTaken(write, 'projects_name', `another project of the client has the name ${JSON.stringify(name)}`);
}

function quotaScope(project: ProjectRow): { clientId: number; regionId: number } {
  return { clientId: project.clientId, regionId: globalRegion };
}

function toResponse(project: ProjectRow): Project {
  return {
    id: project.id,
    client_id: project.clientId,
    created_at: withZone(project.createdAt),
    deleted_at: withZone(project.deletedAt),
    description: project.description,
    is_default: project.isDefault,
    name: project.name,
    state: project.deletedAt ? 'DELETED' : 'ACTIVE',
    task_id: null,
  };
}
