/** What bin/module-resolution.mjs, which replaces Node's resolution, takes for granted. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../src/main/root.ts';

const packages = ['drizzle-orm', 'typebox'];

it('drizzle-orm and typebox are installed once, and their modules are ES modules', () => {
  expect(globSync(`node_modules/**/{${packages.join()}}/package.json`, { cwd: root }).sort()).toEqual(
    packages.map((name) => `node_modules/${name}/package.json`),
  );
  for (const name of packages) {
    const folder = join(root, 'node_modules', name);
    expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).toMatchObject({ type: 'module' });
    expect(globSync('**/package.json', { cwd: folder })).toEqual(['package.json']);
  }
});

it('the imports within typebox name files', () => {
  const folder = join(root, 'node_modules', 'typebox');
  const missing = globSync('build/**/*.mjs', { cwd: folder }).flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/ from '(\.[^']*)'/g)]
      .map(([, name]) => join(folder, dirname(file), name!))
      .filter((target) => !existsSync(target)),
  );
  expect(missing).toEqual([]);
});
