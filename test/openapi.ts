/** The OpenAPI document with its references resolved, for tests that generate requests from it. */

type Json = Record<string, unknown>;

/** A copy of `document` in which every `$ref` is replaced by the component that it refers to. */
export function dereferenced<T>(document: T): T {
  const resolve = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(resolve);
    if (node === null || typeof node !== 'object') return node;
    const { $ref, ...rest } = node as Json & { $ref?: unknown };
    const target = typeof $ref === 'string' ? (resolve(componentOf(document, $ref)) as Json) : {};
    return { ...target, ...Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, resolve(value)])) };
  };
  return resolve(document) as T;
}

function componentOf(document: unknown, reference: string): unknown {
  const names = reference.replace('#/', '').split('/');
  const found = names.reduce<unknown>((part, name) => (part as Json | undefined)?.[name], document);
  if (found === undefined) throw new Error(`component ${reference} not found`);
  return found;
}
