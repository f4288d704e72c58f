/**
 * The projects and regions of a run of `apply`, each with the resources that are there.
 *
 * Invariant: a project or region is one scope, whether the files name it by ID or by name. Otherwise pruning would delete
 * resources that the files describe under the other one.
 */
import type { Target } from '../contexts.ts';
import { type CommandError, exitCodes } from '../errors.ts';
import { type Api, createApi, isPaged, listAll, withQuery } from '../http.ts';
import { createNames, type Names } from '../names.ts';
import { operationById, pathParameters } from '../table.ts';
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

/** Names a project and a region: a resource, or the context if it has no kind. */
type Placed = Partial<Pick<Resource, 'kind' | 'project' | 'region'>>;

export type Scopes = ReturnType<typeof createScopes>;

/** Resources that name no project or region are in those of `target`. */
export function createScopes(target: Target, resources: Resource[]) {
  const known = new Map<string, Scope>();
  const api = createApi(target);
  const names = createNames(api);
  const created = new Set<string>();
  const requests = new Map<string, Promise<unknown>>();
  const isCreated = (project: string) =>
    resources.some(({ kind, name }) => kind.name === 'project' && name === project);
  /** A text that has the form of an ID may name nothing. A kind without projects or regions ignores those of the context. */
  const existing = async (parameter: 'project_id' | 'region_id', id: string, given: unknown, kind?: Kind) => {
    if (kind && given === undefined && !pathParameters(kind.list.path).includes(parameter)) return id;
    const show = operationById(parameter === 'project_id' ? 'getProject' : 'getRegion');
    const path = await names.path(show.path, { [parameter]: id });
    await memoized(requests, path, () => api.send({ method: 'GET', path }));
    return id;
  };
  return {
    /** The ID of the project, or the name of one that the files create. @throws CommandError if it does not exist */
    async project({ kind, project: given }: Placed): Promise<string> {
      const project = given ?? target.project;
      const id = await names.id('project_id', project).catch((error: CommandError) => {
        if (error.exitCode !== exitCodes.notFound || !isCreated(project)) throw error;
        created.add(project);
        return undefined;
      });
      return id === undefined ? project : existing('project_id', id, given, kind);
    },
    /** The ID of the region. @throws CommandError if it does not exist */
    async region({ kind, region: given }: Placed): Promise<string> {
      return existing('region_id', await names.id('region_id', given ?? target.region), given, kind);
    },
    of: (project: string, region: string) =>
      memoized(known, JSON.stringify([project, region]), () =>
        createScope({ ...target, project, region }, created.has(project)),
      ),
    all: () => [...known.values()],
  };
}

function memoized<K, V>(known: Map<K, V>, key: K, create: (key: K) => V): V {
  const value = known.get(key) ?? create(key);
  known.set(key, value);
  return value;
}

/** Parameters of lists without which members of pools are IDs, and policies have no volumes: no change of one would be found. */
const parts = ['details', 'need_volumes'];

function createScope(target: Target, isNew: boolean): Scope {
  const api = createApi(target);
  const names = createNames(api);
  const lists = new Map<Kind, Promise<Live[]>>();
  const read = async ({ list }: Kind): Promise<Live[]> => {
    if (isNew && pathParameters(list.path).includes('project_id')) return [];
    const details = parts.filter((name) => list.query?.[name]).map((name) => [name, true]);
    const path = withQuery(await names.path(list.path, {}), Object.fromEntries(details));
    return listAll(api, path, { paged: isPaged(list) });
  };
  return {
    ...{ target, api, names },
    live: (kind) => memoized(lists, kind, read),
  };
}
