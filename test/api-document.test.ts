/** Completeness of openapi.json for generated clients and for readers. */
import { describe, expect, it } from 'vitest';
import { compileValidator } from '../src/http/validation.ts';
import { declaredApi } from '../src/main/openapi-document.ts';
import { dereferenced } from './openapi.ts';

interface Schema {
  $ref?: string;
  type?: string;
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  allOf?: Schema[];
}

interface Content {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

interface Operation {
  operationId: string;
  summary?: string;
  tags?: string[];
  parameters?: { $ref?: string; name: string; in: string; description?: string; example?: unknown }[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { description?: string; content?: Record<string, Content> }>;
}

interface Document {
  tags: { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

const { document: declared } = (await declaredApi()) as { document: Document };
const document = dereferenced(declared);
const operationsIn = ({ paths }: Document) => Object.values(paths).flatMap((methods) => Object.values(methods));
const operations = operationsIn(document);

/** Paths of the fields of a schema without a description, in the field or in its branches. */
function undescribed(schema: Schema, path: string): string[] {
  const branches = [...(schema.anyOf ?? []), ...(schema.allOf ?? [])];
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, field]) => [
      ...(field.description || field.anyOf?.some(({ description }) => description) ? [] : [`${path}.${name}`]),
      ...undescribed(field, `${path}.${name}`),
    ]),
    ...(schema.items ? undescribed(schema.items, `${path}[]`) : []),
    ...branches.flatMap((branch) => undescribed(branch, path)),
  ];
}

const bodies = operations.flatMap(({ operationId, requestBody }) =>
  Object.entries(requestBody?.content ?? {}).map(([type, content]) => ({ operationId, type, content })),
);

describe('the OpenAPI document', () => {
  it('has an imperative summary and a described tag for every operation', () => {
    const described = document.tags.filter(({ description }) => description.length > 20).map(({ name }) => name);
    const faulty = operations.filter(
      ({ summary = '', tags = [] }) =>
        !/^[A-Z][a-z]+ .*[^.]$/.test(summary) || tags.length !== 1 || !described.includes(tags[0]!),
    );
    expect(faulty.map(({ operationId, summary, tags }) => [operationId, summary, tags])).toEqual([]);
  });

  it('has a description of every parameter and an example of every path parameter', () => {
    const faulty = operations.flatMap(({ operationId, parameters = [] }) =>
      parameters
        .filter((each) => !each.description || (each.in === 'path' && each.example === undefined))
        .map(({ name }) => `${operationId}: ${name}`),
    );
    expect(faulty).toEqual([]);
  });

  it('has a description of every field of requests and responses', () => {
    const faulty = operations.flatMap(({ operationId, requestBody, responses }) =>
      [requestBody, ...Object.values(responses)].flatMap((message) =>
        Object.values(message?.content ?? {}).flatMap(({ schema = {} }) => undescribed(schema, operationId)),
      ),
    );
    expect([...new Set(faulty)]).toEqual([]);
  });

  it('has a named schema for every JSON request and response, or for the items of a list', () => {
    const faulty = operationsIn(declared).flatMap(({ operationId, requestBody, responses }) =>
      [requestBody, ...Object.values(responses)]
        .map((message) => message?.content?.['application/json']?.schema)
        .filter((schema) => schema && !schema.$ref && !schema.items?.$ref && schema.type !== 'null')
        .map(() => operationId),
    );
    expect(faulty).toEqual([]);
  });

  it('has a valid example of every JSON request', () => {
    const faulty = bodies
      .filter(({ type }) => type === 'application/json')
      .flatMap(({ operationId, content }) => {
        const examples = [content.example, ...Object.values(content.examples ?? {}).map(({ value }) => value)];
        const given = examples.filter((example) => example !== undefined);
        const isValid = compileValidator({ schema: content.schema, httpPart: 'body' });
        return given.length > 0 && given.every((each) => isValid(structuredClone(each)) === true) ? [] : [operationId];
      });
    expect(faulty).toEqual([]);
  });

  it('has no pattern with a Unicode class, which many tools cannot read', () => {
    expect(JSON.stringify(declared).match(/"pattern":"[^"]*\\\\[pP]\{[^"]*"/g)).toBeNull();
  });

  it('has shared components for path parameters', () => {
    const faulty = operationsIn(declared).flatMap(({ operationId, parameters = [] }) =>
      parameters.filter(({ in: place }) => place === 'path').map(({ name }) => `${operationId}: ${name}`),
    );
    expect(faulty).toEqual([]);
  });

  it('is at most 0.8 MB long', () => {
    expect(JSON.stringify(declared, null, 2).length).toBeLessThanOrEqual(800_000);
  });
});
