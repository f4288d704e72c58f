/**
 * Moves repeated parts of an OpenAPI document into its components: every schema with a `title` becomes the schema of that
 * name, and every path parameter and repeated query parameter becomes a parameter. So generated clients get named types.
 *
 * Invariant: two shapes with the same name differ in annotations only; otherwise the app does not start.
 */

type Json = Record<string, unknown>;

export interface Components {
  schemas: Record<string, Json>;
  parameters: Record<string, Json>;
}

/** Returns `paths` with references, and their components. @throws Error for different shapes with the same name */
export function withComponents(paths: Json): { paths: Json; components: Components } {
  const schemas = new Map<string, { schema: Json; comparable: string }>();
  const parameters: Record<string, Json> = {};

  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(visit);
    if (node === null || typeof node !== 'object') return node;
    const { title, ...rest } = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
    if (rest['in'] === 'path' && typeof rest['name'] === 'string') return referToParameter(parameters, rest);
    if (typeof title !== 'string') return title === undefined ? rest : { title, ...rest };
    return referToSchema(schemas, title, rest);
  };

  const visited = shareQueryParameters(visit(paths) as Json, parameters);
  return {
    paths: visited,
    components: {
      schemas: sorted(Object.fromEntries([...schemas].map(([name, { schema }]) => [name, schema]))),
      parameters: sorted(parameters),
    },
  };
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

function referToParameter(parameters: Record<string, Json>, parameter: Json): Json {
  const name = parameter['name'] as string;
  const known = (parameters[name] ??= parameter);
  return isEqual(known, parameter) ? { $ref: `#/components/parameters/${name}` } : parameter;
}

/** Of the query parameters with one name, the most frequent spelling is shared if it occurs more than once. */
function shareQueryParameters(paths: Json, parameters: Record<string, Json>): Json {
  const counts = new Map<string, number>();
  const eachQueryParameter = (node: unknown, replace: (parameter: Json) => unknown): unknown => {
    if (Array.isArray(node)) return node.map((each) => eachQueryParameter(each, replace));
    if (node === null || typeof node !== 'object') return node;
    const record = node as Json;
    if (record['in'] === 'query') return replace(record);
    return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, eachQueryParameter(value, replace)]));
  };
  eachQueryParameter(paths, (parameter) => {
    const text = JSON.stringify(parameter);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  });
  const shared: Record<string, Json> = {};
  for (const [text, count] of [...counts].sort(([, one], [, other]) => other - one)) {
    const parameter = JSON.parse(text) as Json;
    if (count > 1) shared[`query_${parameter['name'] as string}`] ??= parameter;
  }
  Object.assign(parameters, shared);
  return eachQueryParameter(paths, (parameter) => {
    const name = `query_${parameter['name'] as string}`;
    return isEqual(shared[name], parameter) ? { $ref: `#/components/parameters/${name}` } : parameter;
  }) as Json;
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1)));
}
