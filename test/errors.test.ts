import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { catalogue, ClientError, type ErrorCode } from '../src/errors/catalogue.ts';
import { declaredApi } from '../src/main/openapi-document.ts';

const codes = Object.keys(catalogue) as ErrorCode[];
const statuses = Object.fromEntries(codes.map((code) => [code, catalogue[code].status]));
const text = readFileSync('docs/errors.md', 'utf8');

/** Headings of the second level and their text. */
const chapters = text
  .split(/^## /m)
  .slice(1)
  .map((chapter) => ({ heading: chapter.split('\n')[0]!.trim(), body: chapter }));

describe('the error catalogue', () => {
  it('has exactly one section in docs/errors.md for each code, with its status', () => {
    const documented = chapters.map(({ heading, body }) => [heading, Number(/^Status (\d{3})\b/m.exec(body)?.[1])]);
    expect(Object.fromEntries(documented)).toEqual(statuses);
    expect(documented).toHaveLength(codes.length);
  });

  it('has an example error of that code in each section', () => {
    for (const { heading, body } of chapters) {
      const example = JSON.parse(/```json\n(.*?)```/s.exec(body)?.[1] ?? 'null');
      expect([heading, example?.exception_class]).toEqual([heading, heading]);
      expect(
        Object.keys(example).filter((key) => !['exception_class', 'message', 'request_id', 'errors'].includes(key)),
      ).toEqual([]);
      expect(example.message.length).toBeGreaterThan(10);
    }
  });

  it('matches the errors of every operation in the OpenAPI document', async () => {
    const document = (await declaredApi()).document as {
      paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
      components: {
        responses: { Error: { content: unknown } };
        schemas: { Error: { properties: { exception_class: { enum: string[] } }; description: string } };
      };
    };
    const schema = document.components.schemas.Error;
    expect(schema.properties.exception_class.enum).toEqual(codes);
    for (const code of codes) expect(schema.description).toContain(`${catalogue[code].status} \`${code}\``);
    expect(document.components.responses.Error.content).toEqual({
      'application/json': { schema: { $ref: '#/components/schemas/Error' } },
    });
    for (const operations of Object.values(document.paths)) {
      for (const { responses } of Object.values(operations)) {
        expect(responses['default']).toEqual({ $ref: '#/components/responses/Error' });
      }
    }
  });

  it('has a 4xx or 5xx status and a one-sentence meaning for each code', () => {
    for (const code of codes) {
      expect(catalogue[code].status).toBeGreaterThanOrEqual(400);
      expect(catalogue[code].status).toBeLessThan(600);
      expect(catalogue[code].meaning).toMatch(/^[A-Z`].*\.$/);
      expect(new ClientError(code, 'a message').status).toBe(catalogue[code].status);
    }
  });

  it('sends x-should-retry: false for exactly the refusals that docs/errors.md lists', () => {
    const final = codes.filter((code) => new ClientError(code, 'a message').headers['x-should-retry'] === 'false');
    const named = /x-should-retry: false`[^(]*\(([^)]*)\)/.exec(text)?.[1] ?? '';
    expect(final).toEqual(codes.filter((code) => named.split(/,\s+/).includes(code)));
    expect(final.every((code) => [409, 507].includes(catalogue[code].status))).toBe(true);
  });
});
