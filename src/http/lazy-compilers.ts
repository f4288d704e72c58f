/**
 * Compiles the validators and serializers of shapes when a request first needs them. All of them take 0.6 s of CPU time, which
 * delayed the start of a server and of every test, and 7 MB of memory.
 *
 * A shape that cannot be compiled is found by `compileShapes`, which `npm run generate` calls.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import buildSerializer from 'fast-json-stringify';
import type { TSchema } from 'typebox';
import type { App } from './app.ts';
import { compileValidator } from './validation.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Compiles the shapes that no request has used yet, one in each turn of the event loop. */
    compileShapes(): Promise<void>;
  }
}

/** Apps of one process share the serializers. ajv shares the validators. */
const serializers = new WeakMap<object, (data: unknown) => string>();

export function lazyCompilers(app: App): void {
  const uncompiled = new Set<() => unknown>();
  const lazily = <Data, Result>(compile: () => (data: Data) => Result) => {
    let compiled: ((data: Data) => Result) | undefined;
    const get = () => {
      uncompiled.delete(get);
      return (compiled = compile());
    };
    uncompiled.add(get);
    return (data: Data) => (compiled ?? get())(data);
  };
  app.setValidatorCompiler(((part: Parameters<typeof compileValidator>[0]) =>
    lazily(() => compileValidator(part))) as never);
  app.setSerializerCompiler((({ schema }: { schema: TSchema }) => lazily(() => serializerOf(schema))) as never);
  app.decorate('compileShapes', async () => {
    for (const get of uncompiled) {
      get();
      await nextTurn();
    }
  });
}

function serializerOf(schema: TSchema): (data: unknown) => string {
  const known =
    serializers.get(schema) ?? (buildSerializer(withNullable(schema) as never) as (data: unknown) => string);
  serializers.set(schema, known);
  return known;
}

/**
 * The same shape with `nullable` in place of each union with null. For a union, fast-json-stringify compiles a validator of
 * each branch with an ajv of its own, and validates each value to find its branch.
 */
function withNullable(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withNullable);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { anyOf, ...rest } = Object.fromEntries(
    Object.entries(schema).map(([name, part]) => [name, withNullable(part)]),
  ) as { anyOf?: { type?: unknown }[] };
  if (!anyOf) return rest;
  const [value, none] = anyOf;
  // ajv, which serves the other unions of the shape, accepts `nullable` beside a type only.
  const isNullable = anyOf.length === 2 && typeof value!.type === 'string' && none!.type === 'null';
  return isNullable ? { ...value, ...rest, nullable: true } : { anyOf, ...rest };
}
