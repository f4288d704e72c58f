/** Completeness of openapi.json for generated clients and for readers. */
import { describe, expect, it } from 'vitest';
import { compileValidator } from '../src/http/validation.ts';
import { withComponents } from '../src/http/openapi-components.ts';
import { declaredApi, documentText } from '../src/main/openapi-document.ts';
import { dereferenced } from './openapi.ts';

interface Schema {
  $ref?: string;
  type?: string;
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema;
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
  deprecated?: boolean;
  responses: Record<string, { description?: string; content?: Record<string, Content>; links?: Record<string, Link> }>;
}

interface Link {
  operationId: string;
  parameters: Record<string, string>;
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

const linksOf = ({ responses }: Operation) =>
  Object.values(responses).flatMap(({ links = {} }) => Object.values(links));

/** Whether every parameter of the link is a parameter of its operation, and every field it reads is in the schema. */
function isComplete({ operationId, parameters }: Link, schema: Schema | undefined): boolean {
  const target = operations.find((operation) => operation.operationId === operationId);
  const known = (target?.parameters ?? []).map(({ name }) => name);
  return Object.entries(parameters).every(
    ([name, value]) => known.includes(name) && (value.startsWith('$request.path.') || hasField(schema, value)),
  );
}

function hasField(schema: Schema | undefined, expression: string): boolean {
  const fieldsOf = (at: Schema, step: string): (Schema | undefined)[] => [
    at.properties?.[step] ?? (step === '0' ? at.items : at.additionalProperties),
    ...[...(at.anyOf ?? []), ...(at.allOf ?? [])].flatMap((branch) => fieldsOf(branch, step)),
  ];
  const steps = expression.replace('$response.body#/', '').split('/');
  const start = schema ? [schema] : [];
  const found = steps.reduce(
    (all, step) => all.flatMap((at) => fieldsOf(at, step)).filter((at) => at !== undefined),
    start,
  );
  return found.length > 0;
}

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

  it('declares all dates as date-time, except those of file shares and tasks, which have no zone', () => {
    const isDate = ({ format, items, anyOf = [] }: Schema): boolean =>
      (format ?? '').endsWith('date-time') || [...(items ? [items] : []), ...anyOf].some(isDate);
    const undeclared = Object.entries(document.components.schemas).flatMap(([title, { properties = {} }]) =>
      Object.entries(properties)
        .filter(([name, field]) => /(_at|_on|^created|^expiration)$/.test(name) && !isDate(field))
        .map(([name]) => `${title}.${name}`),
    );
    const withoutZone = ['acknowledged_at', 'created_on', 'finished_on', 'updated_on'].map((name) => `Task.${name}`);
    expect(undeclared.toSorted()).toEqual(['FileShare.created_at', ...withoutZone]);
  });

  it('has the media type of every response with a body', () => {
    const faulty = operations.flatMap(({ operationId, responses }) =>
      Object.entries(responses)
        .filter(
          ([status, { description, content }]) => /^20[01]/.test(status) && !content && description !== 'No content',
        )
        .map(([status]) => `${operationId}: ${status}`),
    );
    expect(faulty).toEqual([]);
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

  it('limits every text of a body that has a pattern to what the pattern is tested on', () => {
    const long: string[] = [];
    const visit = (part: unknown, path: string): void => {
      if (typeof part !== 'object' || part === null) return;
      const { pattern, maxLength = 0 } = part as { pattern?: unknown; maxLength?: number };
      if (typeof pattern === 'string' && maxLength > 1000) long.push(path);
      for (const [key, value] of Object.entries(part)) visit(value, `${path}.${key}`);
    };
    visit(declared, '');
    expect(long).toEqual([]);
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

  it('links IDs in responses to the operations that take them', () => {
    const faulty = operations.flatMap(({ operationId, responses }) =>
      Object.values(responses).flatMap(({ links = {}, content }) =>
        Object.entries(links)
          .filter(([, link]) => !isComplete(link, content?.['application/json']?.schema))
          .map(([name]) => `${operationId}: ${name}`),
      ),
    );
    expect(faulty).toEqual([]);
    const linked = new Set(operations.flatMap(linksOf).map(({ operationId }) => operationId));
    const unlinked = operations
      .filter(({ operationId, deprecated, parameters = [] }) => {
        const names = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
        const takesId = names.some((name) => !['project_id', 'region_id', 'client_id'].includes(name));
        return takesId && !deprecated && !linked.has(operationId);
      })
      .map(({ operationId }) => operationId);
    const ofHosts = ['getHost', 'forgetHost', 'drainHost', 'undrainHost'];
    expect(unlinked).toEqual([...ofHosts, 'deleteRegistryTag', 'authorizeContainerByPath']);
  });

  it('links task IDs to the task, and a task to the resources that it created', () => {
    const operation = (id: string) => operations.find(({ operationId }) => operationId === id)!;
    expect(linksOf(operation('createVolume'))).toEqual([
      { operationId: 'getTask', parameters: { task_id: '$response.body#/tasks/0' } },
    ]);
    expect(linksOf(operation('getTask'))).toContainEqual({
      operationId: 'getVolume',
      parameters: { volume_id: '$response.body#/created_resources/volumes/0' },
    });
  });

  it('refers to the shapes that a shape extends, instead of repeating their fields', () => {
    const { ClientQuotaFigures, NewToken } = declared.components.schemas;
    expect(ClientQuotaFigures!.allOf).toEqual(
      ['RegionalQuotas', 'GlobalQuotas'].map((name) => ({ $ref: `#/components/schemas/${name}` })),
    );
    const own = NewToken!.allOf!.flatMap(({ properties = {} }) => Object.keys(properties));
    expect([NewToken!.allOf![0], own]).toEqual([{ $ref: '#/components/schemas/Token' }, ['token']]);
  });

  it.each([
    ['a field that only the base requires', { required: [] }, {}, 'Wide differs from the shapes that it extends: id'],
    ['a shape that refuses other fields', { additionalProperties: false }, {}, 'refuses other fields'],
    ['a base that refuses other fields', {}, { additionalProperties: false }, 'refuses other fields'],
  ])('cannot refer to the shapes that a shape extends: %s', (_, wide, base, message) => {
    const id = { type: 'integer' };
    const Base = { title: 'Base', type: 'object', required: ['id'], properties: { id }, ...base };
    const own = { id, more: { type: 'string' } };
    const Wide = { title: 'Wide', type: 'object', required: ['id'], properties: own, extends: ['Base'], ...wide };
    const content = (schema: object) => ({ content: { 'application/json': { schema } } });
    const paths = { '/a': { get: { responses: { 200: content(Base), 201: content(Wide) } } } };
    expect(() => withComponents(paths)).toThrow(message);
  });

  it('has the same texts with short lists on one line', () => {
    const lists = {
      texts: ['x ]', 'y, z', 'a"\\', '[ 1,\n 2 ]', ' '],
      others: [1, -2.5e-7, true, null],
      empty: [],
      nested: [[1], [{}]],
    };
    expect(JSON.parse(documentText(lists))).toEqual(lists);
    expect(documentText({ enum: ['a', 'b'] })).toBe('{\n  "enum": ["a", "b"]\n}\n');
  });

  it('is at most 0.8 MB long', () => {
    expect(documentText(declared).length).toBeLessThanOrEqual(800_000);
  });
});
