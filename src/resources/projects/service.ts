/** The rules of projects. Projects live in rows alone, so every change is done with its transaction. */
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, inUse, notFound } from '../../errors/catalogue.ts';
import type { Uses } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { violatedConstraint } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import type { ReferenceCaches } from '../../platform/reference-cache.ts';
import { globalRegion } from '../../quota/kinds.ts';
import type { Quota } from '../../quota/quota.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import type {
  CreateProject,
  ListProjects,
  Project,
  ProjectCollection,
  ReplaceProject,
  UpdateProject,
} from './schema.ts';
import * as store from './store.ts';
import type { NewProject, ProjectRow } from './store.ts';

/** What of one kind of resource stands in a project. */
export type UsesOfProject = (tx: Tx, projectId: number) => Promise<Uses[]>;

export interface ProjectsDeps {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
  caches: ReferenceCaches;
  /** One a kind of resource that belongs to projects: what projects are for stands above them, so main wires it. */
  usedBy: UsesOfProject[];
}

export type Projects = ReturnType<typeof createProjects>;

export function createProjects(deps: ProjectsDeps) {
  const { db, clock, tasks, quota, idempotency, caches } = deps;

  const insert = async (tx: Tx, project: NewProject): Promise<ProjectRow> => {
    const row = await uniquelyNamed(project.name, () => store.insert(tx, project));
    await caches.changed(tx);
    await quota.reserve(tx, quotaScope(row), { project_count: 1 });
    return row;
  };

  const find = async (id: number): Promise<ProjectRow> => {
    const project = await store.find(db, id);
    if (!project) throw notFound('project', id);
    return project;
  };

  const change = async (
    context: RequestContext,
    id: number,
    changes: Pick<Partial<ProjectRow>, 'name' | 'description'>,
  ): Promise<Project> =>
    idempotency.auditedTransaction(db, context, async (tx) => {
      const row = await uniquelyNamed(changes.name, () => store.update(tx, id, changes));
      if (!row) throw notFound('project', id);
      return present(row);
    });

  return {
    /** The client of a live project; null when there is none. For every request, so from memory. */
    clientOf: caches.cached((id: number) => store.clientOf(db, id)),

    /** The default project that a client is born with. Returns its id. */
    async createFirst(tx: Tx, clientId: number, name: string): Promise<number> {
      const createdAt = clock.now();
      const project = await insert(tx, { clientId, name, description: null, isDefault: true, createdAt });
      return project.id;
    },

    async create(context: RequestContext, scope: Scope, body: CreateProject): Promise<Project> {
      if (context.actor.projectIds) {
        throw new ClientError('Forbidden', 'the token is limited to some projects, so it may not create another one');
      }
      return idempotency.auditedTransaction(db, context, async (tx, act) => {
        const project = await insert(tx, {
          clientId: scope.clientId,
          name: body.name,
          description: body.description ?? null,
          isDefault: false,
          createdAt: clock.now(),
        });
        act.projectId = project.id;
        return present(project);
      });
    },

    async list(context: RequestContext, scope: Scope, filter: ListProjects): Promise<ProjectCollection> {
      const { count, rows } = await store.list(db, scope.clientId, context.actor.projectIds, filter);
      return { count, results: rows.map(present) };
    },

    async get(scope: Scope): Promise<Project> {
      return present(await find(scope.projectId));
    },

    async update(context: RequestContext, scope: Scope, body: UpdateProject): Promise<Project> {
      const { name, description } = body;
      if (name === undefined && description === undefined) return present(await find(scope.projectId));
      return change(context, scope.projectId, body);
    },

    /** The deprecated form: what is absent is emptied. */
    async replace(context: RequestContext, scope: Scope, body: ReplaceProject): Promise<Project> {
      return change(context, scope.projectId, { name: body.name, description: body.description ?? null });
    },

    async delete(context: RequestContext, scope: Scope): Promise<{ tasks: string[] }> {
      const id = scope.projectId;
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const project = await store.lock(tx, id);
        if (!project) throw notFound('project', id);
        if (project.isDefault) {
          throw new ClientError('Conflict', `project ${id} is the default project of its client; it cannot be deleted`);
        }
        const uses: Uses[] = [];
        for (const usesOfProject of deps.usedBy) uses.push(...(await usesOfProject(tx, id)));
        if (uses.length > 0) throw inUse('project', id, uses);
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

/** The index decides, so that of two at once one loses, whichever looked first. */
async function uniquelyNamed<T>(name: string | undefined, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (violatedConstraint(error) !== 'projects_name') throw error;
    throw new ClientError('NameTaken', `another project of the client has the name ${JSON.stringify(name)}`);
  }
}

function quotaScope(project: ProjectRow): { clientId: number; regionId: number } {
  return { clientId: project.clientId, regionId: globalRegion };
}

function present(project: ProjectRow): Project {
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
