/** docs/compatibility.md is generated; these tests hold its differences against the tests that prove them. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compatibilityPage, keyOf, readOfficialOperations } from '../src/main/compatibility.ts';
import { differences } from '../src/main/differences.ts';
import { declaredApi } from '../src/main/openapi-document.ts';
import { dereferenced } from './openapi.ts';

interface Document {
  paths: Record<string, Record<string, { parameters?: { name: string }[] }>>;
}

const official = readOfficialOperations(readFileSync('src/main/official-operations.txt', 'utf8'));

describe('docs/compatibility.md', () => {
  it.each(differences)('has a test that proves: $here', ({ test: [file, name] }) => {
    expect(readFileSync(file, 'utf8')).toContain(name);
  });

  it('knows every official query parameter of the operations that are served', async () => {
    const { paths } = dereferenced((await declaredApi()).document) as Document;
    const known = new Map(
      Object.entries(paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, { parameters = [] }]) => [
          keyOf(method, path),
          parameters.map(({ name }) => name),
        ]),
      ),
    );
    const unknown = official.flatMap(({ method, path, query }) => {
      const names = known.get(keyOf(method, path));
      return names ? query.filter((name) => !names.includes(name)).map((name) => `${method} ${path} ${name}`) : [];
    });
    expect(unknown).toEqual([]);
  });

  it('lists every official operation once, served or not', async () => {
    const lines = official.map(({ method, path }) => `${method} ${path}`);
    expect(new Set(lines).size).toBe(lines.length);
    const page = compatibilityPage(official, (await declaredApi()).document as never);
    const listed = page.split('## Served')[1]!.split('## Beyond')[0]!;
    const absent = page.split('nothing is served: ')[1]!.split('.\n')[0]!;
    const numberAbsent = [...absent.matchAll(/\((\d+)\)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    expect([...listed.matchAll(/^\| [A-Z]+ `/gm)].length + numberAbsent).toBe(official.length);
  });
});
