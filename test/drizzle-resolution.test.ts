/** What bin/drizzle-resolution.mjs, which replaces Node's resolution, takes for granted. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../src/main/root.ts';

const folder = join(root, 'node_modules', 'drizzle-orm');

it('drizzle-orm is installed once, and its .js files are ES modules', () => {
  expect(globSync('node_modules/**/drizzle-orm/package.json', { cwd: root })).toEqual([
    'node_modules/drizzle-orm/package.json',
  ]);
  expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).toMatchObject({ type: 'module' });
  expect(globSync('**/package.json', { cwd: folder })).toEqual(['package.json']);
});
