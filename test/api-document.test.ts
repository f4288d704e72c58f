/** What openapi.json must contain so that clients generated from it, and people who read it, need nothing else. */
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

/** Paths of the fields of a schema that have no description, neither themselves nor in the schema that they refer to. */
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

  it('describes every parameter, and gives every path parameter an example', () => {
    const faulty = operations.flatMap(({ operationId, parameters = [] }) =>
      parameters
        .filter((each) => !each.description || (each.in === 'path' && each.example === undefined))
        .map(({ name }) => `${operationId}: ${name}`),
    );
    expect(faulty).toEqual([]);
  });

  it('describes every field of requests and answers', () => {
    const faulty = operations.flatMap(({ operationId, requestBody, responses }) =>
      [requestBody, ...Object.values(responses)].flatMap((message) =>
        Object.values(message?.content ?? {}).flatMap(({ schema = {} }) => undescribed(schema, operationId)),
      ),
    );
    expect([...new Set(faulty)]).toEqual([]);
  });

  it('names the shape of every JSON request and answer, or of the items of a list', () => {
    const faulty = operationsIn(declared).flatMap(({ operationId, requestBody, responses }) =>
      [requestBody, ...Object.values(responses)]
        .map((message) => message?.content?.['application/json']?.schema)
        .filter((schema) => schema && !schema.$ref && !schema.items?.$ref && schema.type !== 'null')
        .map(() => operationId),
    );
    expect(faulty).toEqual([]);
  });

  it('has an example of every JSON request that its schema accepts', () => {
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

  it('refers to path parameters that operations share', () => {
    const faulty = operationsIn(declared).flatMap(({ operationId, parameters = [] }) =>
      parameters.filter(({ in: place }) => place === 'path').map(({ name }) => `${operationId}: ${name}`),
    );
    expect(faulty).toEqual([]);
  });

  it('is at most 0.8 MB long', () => {
    expect(JSON.stringify(declared, null, 2).length).toBeLessThanOrEqual(800_000);
  });
});
