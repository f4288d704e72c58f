/**
 * Moves repeated parts of an OpenAPI document into its components, so that generated clients get named types: every schema
 * with a `title` becomes the schema of that name; a parameter, request body or response with a schema becomes a component
 * if it is used twice, and a path parameter always. Of different parts with one name, the most frequent becomes the
 * component. A type or null becomes a list of two types, which is shorter than a union. A shape that extends others
 * (`extending` in shapes.ts) becomes an `allOf` of references to them and of its own fields.
 *
 * Invariant: two shapes with the same name differ in annotations only; otherwise the app does not start.
 */

type Json = Record<string, unknown>;

interface Components {
  schemas: Record<string, Json>;
  parameters: Record<string, Json>;
  requestBodies: Record<string, Json>;
  responses: Record<string, Json>;
}

type Operation = { parameters?: Json[]; requestBody?: Json; responses: Record<string, Json> };

/** The uses of a named shape: the references to it, which are completed when all uses are known. */
interface NamedShape {
  comparable: string;
  uses: { schema: Json; reference: Json }[];
}

/** Returns `paths` with references, and their components. @throws Error for different shapes with the same name */
export function withComponents(paths: Json): { paths: Json; components: Components } {
  const shapes = new Map<string, NamedShape>();

  const visit = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(visit);
    if (node === null || typeof node !== 'object') return node;
    const { title, ...rest } = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, visit(value)]));
    if (typeof title !== 'string') return title === undefined ? withNullableType(rest) : { title, ...rest };
    return referToSchema(shapes, title, rest);
  };

  const visited = visit(paths) as Record<string, Record<string, Operation>>;
  const operations = Object.values(visited).flatMap((methods) => Object.values(methods));
  // The order of the visit: the shapes that a shape contains are complete before it is compared.
  const complete = Object.fromEntries([...shapes].map(([name, { uses }]) => [name, completeReferences(uses)]));
  return {
    paths: visited,
    components: {
      schemas: sorted(
        Object.fromEntries(Object.entries(complete).map(([name, schema]) => [name, withBases(name, schema, complete)])),
      ),
      parameters: shareParts(
        'parameters',
        operations.flatMap(({ parameters }) => parameters ?? []),
        parameterName,
        (parameter) => (parameter['in'] === 'path' ? 1 : 2),
      ),
      requestBodies: shareParts(
        'requestBodies',
        operations.flatMap(({ requestBody }) => (requestBody ? [requestBody] : [])),
        schemaName,
      ),
      responses: shareParts(
        'responses',
        operations.flatMap(({ responses }) => Object.values(responses)),
        schemaName,
      ),
    },
  };
}

/** Writes `anyOf: [{ type, … }, { type: 'null' }]` as `type: [type, 'null']`. */
function withNullableType(schema: Json): Json {
  const { anyOf, ...rest } = schema as { anyOf?: Json[] };
  const [type, other, ...more] = anyOf ?? [];
  if (typeof type?.['type'] !== 'string' || more.length > 0) return schema;
  if (JSON.stringify(other) !== '{"type":"null"}' || 'enum' in type) return schema;
  return { ...type, type: [type['type'], 'null'], ...rest };
}

/** Fields that may differ between the uses of a named shape. */
const annotations = ['description', 'default', 'deprecated', 'examples'];

function referToSchema(shapes: Map<string, NamedShape>, name: string, schema: Json): Json {
  const comparable = JSON.stringify(Object.entries(schema).filter(([key]) => !annotations.includes(key)));
  const known = shapes.get(name) ?? { comparable, uses: [] };
  if (known.comparable !== comparable) throw new Error(`two different shapes are named ${name}`);
  shapes.set(name, known);
  const reference = { $ref: `#/components/schemas/${name}` };
  known.uses.push({ schema, reference });
  return reference;
}

/** Returns the schema with its most frequent annotations, and adds those that differ to the references. */
function completeReferences(uses: NamedShape['uses']): Json {
  const shared = mostFrequent(uses.map(({ schema }) => schema))[0]!;
  for (const { schema, reference } of uses) {
    for (const key of annotations) {
      if (key in schema && !isEqual(schema[key], shared[key])) reference[key] = schema[key];
    }
  }
  return shared;
}

/** An object shape, perhaps with the names of the shapes that it extends. */
type ObjectShape = Json & { properties: Json; required?: string[]; extends?: string[] };

/** Replaces the fields of the shapes that a shape extends with references to these shapes. */
function withBases(name: string, schema: Json, shapes: Record<string, Json>): Json {
  const { extends: bases, type, properties, required = [], ...rest } = schema as ObjectShape;
  if (!bases) return schema;
  const missing = bases.find((base) => !shapes[base]);
  if (missing !== undefined) throw new Error(`${name} extends ${missing}, which no operation has`);
  const all = bases.map((base) => shapes[base] as ObjectShape);
  const inherited = Object.assign({}, ...all.map((base) => base.properties)) as Json;
  const differing = Object.keys(inherited).filter((key) => !isEqual(properties[key], inherited[key]));
  const optional = all.flatMap((base) => base.required ?? []).filter((key) => !required.includes(key));
  if (differing.length + optional.length > 0) {
    throw new Error(`${name} differs from the shapes that it extends: ${[...differing, ...optional].join(', ')}`);
  }
  // With `allOf`, each of them would refuse the fields of the others.
  if ([schema, ...all].some(({ additionalProperties }) => additionalProperties === false)) {
    throw new Error(`${name} or a shape that it extends refuses other fields`);
  }
  const own = Object.entries(properties).filter(([key]) => !(key in inherited));
  const ownRequired = required.filter((key) => !all.some((base) => base.required?.includes(key)));
  return {
    ...rest,
    allOf: [
      ...bases.map((base) => ({ $ref: `#/components/schemas/${base}` })),
      ...(own.length > 0
        ? [{ type, ...(ownRequired.length > 0 && { required: ownRequired }), properties: Object.fromEntries(own) }]
        : []),
    ],
  };
}

/** The members of the largest group of equal members. */
function mostFrequent(nodes: Json[]): Json[] {
  const groups = Object.values(Object.groupBy(nodes, (node) => JSON.stringify(node)));
  return groups.reduce((most, group) => (group!.length > most!.length ? group : most))!;
}

/** Path and query parameters may have the same name. */
function parameterName(parameter: Json): string {
  return `${parameter['in'] === 'query' ? 'query_' : ''}${parameter['name']}`;
}

/** The name of the schema of a request body or response; null when the schema has no name or is missing. */
function schemaName(part: Json): string | null {
  const content = part['content'] as Record<string, { schema?: Json }> | undefined;
  const reference = content?.['application/json']?.schema?.['$ref'];
  return typeof reference === 'string' ? reference.slice(reference.lastIndexOf('/') + 1) : null;
}

/** Replaces parts that are used `leastUses` times or more with references, in place, and returns the components. */
function shareParts(
  kind: string,
  parts: Json[],
  nameOf: (part: Json) => string | null,
  leastUses: (part: Json) => number = () => 2,
): Record<string, Json> {
  const named = Map.groupBy(parts, nameOf);
  named.delete(null);
  const shared: Record<string, Json> = {};
  for (const [name, uses] of named) {
    const most = mostFrequent(uses);
    if (most.length < leastUses(most[0]!)) continue;
    shared[name!] = { ...most[0] };
    for (const part of most) {
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
