/**
 * Moves repeated parts of an OpenAPI document into its components, so that generated clients get named types: every schema
 * with a `title` becomes the schema of that name, and the most frequent parameter of a name and response with a schema
 * become the component of that name.
 *
 * Invariant: two shapes with the same name differ in annotations only; otherwise the app does not start.
 */

type Json = Record<string, unknown>;

export interface Components {
  schemas: Record<string, Json>;
  parameters: Record<string, Json>;
  responses: Record<string, Json>;
}

type Operation = { parameters?: Json[]; responses: Record<string, Json> };

/** Returns `paths` with references, and their components. @throws Error for different shapes with the same name */
export function withComponents(paths: Json): { paths: Json; components: Components } {
  const schemas = new Map<string, { schema: Json; comparable: string }>();

  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(visit);
    if (node === null || typeof node !== 'object') return node;
    const { title, ...rest } = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
    if (typeof title !== 'string') return title === undefined ? rest : { title, ...rest };
    return referToSchema(schemas, title, rest);
  };

  const visited = visit(paths) as Record<string, Record<string, Operation>>;
  const operations = Object.values(visited).flatMap((methods) => Object.values(methods));
  return {
    paths: visited,
    components: {
      schemas: sorted(Object.fromEntries([...schemas].map(([name, { schema }]) => [name, schema]))),
      parameters: shareParts(
        'parameters',
        operations.flatMap(({ parameters }) => parameters ?? []),
        parameterName,
        1,
      ),
      responses: shareParts(
        'responses',
        operations.flatMap(({ responses }) => Object.values(responses)),
        responseName,
        2,
      ),
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

/** Path and query parameters may have the same name. */
function parameterName(parameter: Json): string {
  return `${parameter['in'] === 'query' ? 'query_' : ''}${parameter['name']}`;
}

/** The name of its schema; null for a response with an unnamed schema or without one. */
function responseName(response: Json): string | null {
  const content = response['content'] as Record<string, { schema?: Json }> | undefined;
  const reference = content?.['application/json']?.schema?.['$ref'];
  return typeof reference === 'string' ? reference.slice(reference.lastIndexOf('/') + 1) : null;
}

/** Replaces the parts that are used at least `leastUses` times with references, in place, and returns the components. */
function shareParts(
  kind: string,
  parts: Json[],
  nameOf: (part: Json) => string | null,
  leastUses: number,
): Record<string, Json> {
  const uses = new Map<string, Map<string, Json[]>>();
  for (const part of parts) {
    const name = nameOf(part);
    if (name === null) continue;
    const variants = uses.get(name) ?? new Map<string, Json[]>();
    uses.set(name, variants);
    const text = JSON.stringify(part);
    variants.set(text, [...(variants.get(text) ?? []), part]);
  }
  const shared: Record<string, Json> = {};
  for (const [name, variants] of uses) {
    const [most] = [...variants.values()].sort((one, other) => other.length - one.length);
    if (most!.length < leastUses) continue;
    shared[name] = { ...most![0] };
    for (const part of most!) {
      for (const key of Object.keys(part)) delete part[key];
      part['$ref'] = `#/components/${kind}/${name}`;
    }
  }
  return sorted(shared);
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1)));
}
