/**
 * The projects and regions of a run of `apply`, each with the resources that are there.
 *
 * Invariant: a project or region is one scope, whether the files name it by ID or by name. Otherwise pruning would delete
 * resources that the files describe under the other one.
 */
import type { Target } from '../contexts.ts';
import { CommandError, exitCodes } from '../errors.ts';
import { createApi, listAll } from '../http.ts';
import type { Api } from '../http.ts';
import { createNames } from '../names.ts';
import type { Names } from '../names.ts';
import { pathParameters } from '../table.ts';
import type { Kind } from './kinds.ts';
import type { Resource } from './manifest.ts';
import type { Live } from './plan.ts';

export interface Scope {
  /** Has IDs, except of a project that the files create. */
  target: Target;
  api: Api;
  names: Names;
  /** All resources of the kind, read once. */
  live(kind: Kind): Promise<Live[]>;
}

export interface Scopes {
  /** Of the resource, or of the context where it names neither project nor region. */
  of(resource: Pick<Resource, 'project' | 'region'>): Promise<Scope>;
  all(): Scope[];
}

export function createScopes(target: Target, resources: Resource[]): Scopes {
  const known = new Map<string, Scope>();
  const names = createNames(createApi(target));
  const isCreated = (project: string) =>
    resources.some(({ kind, name }) => kind.name === 'project' && name === project);
  return {
    async of({ project = target.project, region = target.region }) {
      let isNew = false;
      const projectId = await names.id('project_id', project).catch((error: CommandError) => {
        isNew = error.exitCode === exitCodes.notFound && isCreated(project);
        if (!isNew) throw error;
        return project;
      });
      const own = { ...target, project: projectId, region: await names.id('region_id', region) };
      const key = JSON.stringify([own.project, own.region]);
      const scope = known.get(key) ?? createScope(own, isNew);
      known.set(key, scope);
      return scope;
    },
    all: () => [...known.values()],
  };
}

function createScope(target: Target, isNew: boolean): Scope {
  const api = createApi(target);
  const names = createNames(api);
  const lists = new Map<Kind, Promise<Live[]>>();
  const read = async ({ list }: Kind): Promise<Live[]> => {
    if (isNew && pathParameters(list.path).includes('project_id')) return [];
    return listAll(api, await names.path(list.path, {}), { paged: 'limit' in (list.query ?? {}) });
  };
  return {
    ...{ target, api, names },
    live(kind) {
      const list = lists.get(kind) ?? read(kind);
      lists.set(kind, list);
      return list;
    },
  };
}
