/** The operations of openapi.json that change something, with the fields of their bodies. */
import { readFileSync } from 'node:fs';
import type { Json, JsonObject } from '../../console/src/code/request.ts';

const document = JSON.parse(readFileSync('openapi.json', 'utf8'));

export interface Operation {
  id: string;
  method: string;
  path: string;
  /** Names of the parameters in the path and in the query. */
  params: string[];
  query: string[];
  /** Fields of an object body, those that it requires, and an example of a body. */
  fields: string[];
  required: string[];
  example: Json | undefined;
  answersWithTasks: boolean;
}

export const operations: Operation[] = Object.entries<Record<string, any>>(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods)
    .filter(([method]) => method !== 'get')
    .map(([method, declared]) => operationOf(method, path, declared)),
);

/** The paths of the operations that only read, by operation. */
export const readPaths = new Map<string, string>(
  Object.entries<Record<string, any>>(document.paths)
    .filter(([, methods]) => methods['get'])
    .map(([path, methods]) => [methods['get'].operationId, path]),
);

export const operationsById = new Map(operations.map((operation) => [operation.id, operation]));

function operationOf(method: string, path: string, declared: Record<string, any>): Operation {
  const parameters: Record<string, string>[] = (declared['parameters'] ?? []).map(dereference);
  const content = declared['requestBody'] && dereference(declared['requestBody']).content['application/json'];
  const [fields, required] = content ? fieldsOf(content.schema) : [[], []];
  const [firstExample] = Object.values<{ value: Json }>(content?.examples ?? {});
  return {
    id: declared['operationId'],
    method,
    path,
    params: [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!),
    query: parameters.filter((parameter) => parameter['in'] === 'query').map((parameter) => parameter['name']!),
    fields,
    required,
    example: content?.example ?? firstExample?.value,
    answersWithTasks: JSON.stringify(declared['responses']['200'] ?? {}).includes('/TaskIds"'),
  };
}

/** All fields of the alternatives, and those that every alternative requires. */
function fieldsOf(given: JsonObject): [string[], string[]] {
  const schema = dereference(given);
  const alternatives = ((schema['anyOf'] ?? schema['oneOf'] ?? []) as JsonObject[]).map(fieldsOf);
  const own = Object.keys((schema['properties'] ?? {}) as JsonObject);
  const shared = alternatives.map(([, required]) => required);
  const required = (shared[0] ?? []).filter((name) => shared.every((others) => others.includes(name)));
  return [
    [...new Set([...own, ...alternatives.flatMap(([fields]) => fields)])],
    [...((schema['required'] ?? []) as string[]), ...required],
  ];
}

function dereference(schema: any): any {
  if (typeof schema?.$ref !== 'string') return schema;
  const [kind, name] = schema.$ref.split('/').slice(-2);
  return dereference(document.components[kind][name]);
}
