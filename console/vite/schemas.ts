import { readFileSync } from 'node:fs';
import type { Plugin } from 'vite';

const PREFIX = 'schema:';

/**
 * `import schema from 'schema:CreateStandardFileShare'` is that component of openapi.json with its references replaced, so a
 * form carries the rules of its own request and nothing else.
 */
export function schemas(path: string): Plugin {
  return {
    name: 'cloudyard:schemas',
    resolveId: (id) => (id.startsWith(PREFIX) ? `\0${id}` : null),
    load(id) {
      if (!id.startsWith(`\0${PREFIX}`)) return null;
      this.addWatchFile(path);
      const { components } = JSON.parse(readFileSync(path, 'utf8')) as { components: { schemas: Components } };
      const name = id.slice(PREFIX.length + 1);
      return { code: `export default ${JSON.stringify(resolveComponent(components.schemas, name))}`, map: null };
    },
  };
}

type Components = Record<string, unknown>;

/** The component `name` without `$ref`. Request components are not recursive; a recursive one is an error of the build. */
function resolveComponent(components: Components, name: string, within: readonly string[] = []): unknown {
  const schema = components[name];
  if (schema === undefined) throw new Error(`openapi.json has no component ${name}`);
  if (within.includes(name)) throw new Error(`component ${name} refers to itself`);
  return resolve(schema, components, [...within, name]);
}

function resolve(schema: unknown, components: Components, within: readonly string[]): unknown {
  if (Array.isArray(schema)) return schema.map((item) => resolve(item, components, within));
  if (typeof schema !== 'object' || schema === null) return schema;
  const { $ref, examples: _examples, ...rest } = schema as Record<string, unknown>;
  const own = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, resolve(value, components, within)]));
  if (typeof $ref !== 'string') return nullableAsUnion(own);
  const target = resolveComponent(components, $ref.slice($ref.lastIndexOf('/') + 1), within);
  return { ...(target as object), ...own };
}

/** Forms read `type: [type, 'null']` as the union of the two. */
function nullableAsUnion(schema: Record<string, unknown>): Record<string, unknown> {
  if (!Array.isArray(schema['type'])) return schema;
  const { description, deprecated, default: value, ...constraints } = schema;
  const annotations = Object.entries({ description, deprecated, default: value }).filter(
    ([, each]) => each !== undefined,
  );
  const alternatives = (schema['type'] as string[]).map((type) =>
    type === 'null' ? { type } : { ...constraints, type },
  );
  return { anyOf: alternatives, ...Object.fromEntries(annotations) };
}
