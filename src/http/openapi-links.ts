/**
 * The links of the OpenAPI document: how the ID in a response becomes a parameter of another operation. Tools that test an
 * API in sequences (create, read, change, delete), and readers, follow them.
 *
 * A list, or an operation that creates a resource and returns it, links to the operations on one of its items; task IDs
 * link to the task, and a task to the resources that it created. All links are derived from paths and response schemas.
 */

type Json = Record<string, any>;

interface Declared {
  method: string;
  path: string;
  operationId: string;
  deprecated?: boolean;
  responses: Record<string, Json>;
}

/** Clients choose them before the first request, so no response supplies them. */
const placeParameters = ['project_id', 'region_id', 'client_id'];
/** Fields that identify an item of a list, in order of preference. */
const idFields = ['id', 'digest', 'name'];
/** IDs that the list at the path before them does not have. */
const otherLists: Record<string, { list: string; id: string }> = {
  task_id: { list: 'listTasks', id: 'results/0/id' },
  member_id: { list: 'listLbPools', id: 'results/0/members/0/id' },
  schedule_id: { list: 'listLifecyclePolicies', id: 'results/0/schedules/0/id' },
  user_action_id: { list: 'listUserActions', id: 'results/0/id' },
  delivery_id: { list: 'listNotifications', id: 'results/0/deliveries/0/id' },
};

/** Adds `links` to the responses of `paths`, in place. */
export function addLinks(paths: Record<string, Record<string, Omit<Declared, 'method' | 'path'>>>): void {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, declared]) => ({ ...declared, method, path })),
  );
  for (const operation of all) {
    if (schemaOf(operation)?.title === 'TaskIds') link(operation, 'getTask', { task_id: '$response.body#/tasks/0' });
  }
  const operations = all.filter(({ deprecated }) => !deprecated);
  const task = operations.find(({ operationId }) => operationId === 'getTask');
  for (const [parameter, uses] of Map.groupBy(operations, ({ path }) => parametersOf(path).at(-1))) {
    if (parameter === undefined || placeParameters.includes(parameter)) continue;
    const shortest = uses.reduce((one, other) => (other.path.length < one.path.length ? other : one));
    const collection = shortest.path.slice(0, shortest.path.indexOf(`/{${parameter}}`));
    linkList(operations, { parameter, uses, collection });
    linkCreated(operations, { parameter, uses, collection });
    const get = uses.find(({ method, path }) => method === 'get' && path === `${collection}/{${parameter}}`);
    const kind = kindOf(collection);
    if (task && get && kind)
      link(task, get.operationId, { [parameter]: `$response.body#/created_resources/${kind}/0` });
  }
}

/** The operations whose last path parameter is `parameter`, and the path of the list. */
interface Item {
  parameter: string;
  uses: Declared[];
  collection: string;
}

function linkList(operations: Declared[], { parameter, uses, collection }: Item): void {
  const other = otherLists[parameter];
  const list = operations.find(({ method, path, operationId }) =>
    other ? operationId === other.list : method === 'get' && path === collection,
  );
  const field = idFields.find((name) => list && schemaOf(list)?.properties?.results?.items?.properties?.[name]);
  if (!list || !field) return;
  const id = other?.id ?? `results/0/${field}`;
  for (const { operationId, path } of uses) {
    link(list, operationId, { ...parentsOf(list, path, parameter), [parameter]: `$response.body#/${id}` });
  }
}

/** Links an operation that returns the resource that it creates to those that read, change and delete it. */
function linkCreated(operations: Declared[], { parameter, uses, collection }: Item): void {
  const create = operations.find(({ method, path }) => method === 'post' && path === collection);
  const field = idFields.find((name) => create && schemaOf(create)?.properties?.[name]);
  if (!create || !field) return;
  for (const { operationId, path } of uses.filter(({ path }) => path === `${collection}/{${parameter}}`)) {
    link(create, operationId, { ...parentsOf(create, path, parameter), [parameter]: `$response.body#/${field}` });
  }
}

/** Other parameters of the path that identify a resource: from the request, or from the first item of the list. */
function parentsOf(source: Declared, path: string, parameter: string): Record<string, string> {
  const parents = parametersOf(path).filter((name) => name !== parameter && !placeParameters.includes(name));
  return Object.fromEntries(
    parents.map((name) => [
      name,
      source.path.includes(`{${name}}`) ? `$request.path.${name}` : '$response.body#/results/0/id',
    ]),
  );
}

function link(from: Declared, operationId: string, parameters: Record<string, string>): void {
  const success = successOf(from);
  if (success) (success['links'] ??= {})[operationId] = { operationId, parameters };
}

function schemaOf(operation: Declared): Json | undefined {
  return successOf(operation)?.['content']?.['application/json']?.schema;
}

function successOf({ responses }: Declared): Json | undefined {
  return Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
}

/** The key in `created_resources` of a task, which is the name of the collection: `/cloud/v1/lbpools/…` has `pools`. */
function kindOf(collection: string): string | undefined {
  return /^\/cloud(?:yard)?\/v\d+\/(?:lb)?(\w+)\/\{project_id\}\/\{region_id\}$/.exec(collection)?.[1];
}

function parametersOf(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
}
