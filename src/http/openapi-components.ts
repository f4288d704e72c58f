/**
 * Moves repeated parts of an OpenAPI document into its components: every schema with a `title` becomes the schema of that
 * name, every parameter becomes the parameter of its name, and a response of many operations becomes the response with the
 * name of its schema. So generated clients get named types.
 *
 * Invariant: two shapes with the same name differ in annotations only; otherwise the app does not start.
 */

type Json = Record<string, unknown>;

export interface Components {
  schemas: Record<string, Json>;
  parameters: Record<string, Json>;
  responses: Record<string, Json>;
}

/** Returns `paths` with references, and their components. @throws Error for different shapes with the same name */
export function withComponents(paths: Json): { paths: Json; components: Components } {
  const schemas = new Map<string, { schema: Json; comparable: string }>();
  const parameters: Record<string, Json> = {};

  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(visit);
    if (node === null || typeof node !== 'object') return node;
    const { title, ...rest } = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
    if (isParameter(rest)) return referToParameter(parameters, rest);
    if (typeof title !== 'string') return title === undefined ? rest : { title, ...rest };
    return referToSchema(schemas, title, rest);
  };

  const visited = visit(paths) as Paths;
  return {
    paths: visited,
    components: {
      schemas: sorted(Object.fromEntries([...schemas].map(([name, { schema }]) => [name, schema]))),
      parameters: sorted(parameters),
      responses: sorted(shareResponses(visited)),
    },
  };
}

type Paths = Record<string, Record<string, { responses: Json }>>;

/** A response that more operations than this have becomes a component. */
const maxInline = 2;

/** Replaces equal responses by references, and returns what they refer to. */
function shareResponses(paths: Paths): Record<string, Json> {
  const all = Object.values(paths).flatMap((operations) =>
    Object.values(operations).flatMap(({ responses }) =>
      Object.entries(responses as Record<string, Json>).map(([status, response]) => ({ responses, status, response })),
    ),
  );
  const shared: Record<string, Json> = {};
  for (const uses of Map.groupBy(all, ({ response }) => JSON.stringify(response)).values()) {
    const { response } = uses[0]!;
    const name = schemaNameOf(response);
    if (uses.length <= maxInline || name === undefined || shared[name]) continue;
    shared[name] = response;
    for (const { responses, status } of uses) responses[status] = { $ref: `#/components/responses/${name}` };
  }
  return shared;
}

/** The name of the schema of a response; undefined if it has none. */
function schemaNameOf({ content }: Json): string | undefined {
  const [media] = Object.values((content ?? {}) as Record<string, { schema?: { $ref?: string } }>);
  return media?.schema?.$ref?.split('/').at(-1);
}

/** Fields that may differ between the uses of a named shape. */
const annotations = ['description', 'default', 'deprecated', 'examples'];

function referToSchema(schemas: Map<string, { schema: Json; comparable: string }>, name: string, schema: Json): Json {
  const own = Object.entries(schema);
  const comparable = JSON.stringify(own.filter(([key]) => !annotations.includes(key)));
  const known = schemas.get(name);
  if (known && known.comparable !== comparable) throw new Error(`two different shapes are named ${name}`);
  if (!known) schemas.set(name, { schema, comparable });
  const shared = known?.schema ?? schema;
  const different = own.filter(([key, value]) => annotations.includes(key) && !isEqual(value, shared[key]));
  return { $ref: `#/components/schemas/${name}`, ...Object.fromEntries(different) };
}

function isParameter(node: Json): boolean {
  return (node['in'] === 'path' || node['in'] === 'query') && typeof node['name'] === 'string';
}

/** The first shape of a name becomes the component. Path and query parameters may have the same name. */
function referToParameter(parameters: Record<string, Json>, parameter: Json): Json {
  const name = `${parameter['in'] === 'query' ? 'query_' : ''}${parameter['name']}`;
  const known = (parameters[name] ??= parameter);
  return isEqual(known, parameter) ? { $ref: `#/components/parameters/${name}` } : parameter;
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1)));
}
