/** What bin/module-resolution.mjs, which replaces Node's resolution, takes for granted. */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { root } from '../src/platform/program-files.ts';
import { preload } from './server-program.ts';

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

it('a server loads neither undici nor HTTP/2, which take 20 MB', () => {
  const loaded = 'process.moduleLoadList.filter((name) => /undici|http2/.test(name))';
  expect(evaluated(loaded, 'run.ts', 'server-parts.ts')).toEqual([]);
});

it('the embedded PostgreSQL starts before the server is loaded', () => {
  const loaded = `Object.keys(process.getBuiltinModule('module')._cache).some((file) => file.includes('/fastify/'))`;
  expect(evaluated(loaded, 'run.ts')).toBe(false);
  expect(evaluated(loaded, 'server-parts.ts')).toBe(true);
});

it('a command that reads no configuration file loads neither Ajv nor the parser of YAML', () => {
  const loaded = `Object.keys(process.getBuiltinModule('module')._cache).filter((file) => /node_modules.(ajv|yaml)/.test(file))`;
  const program = `process.argv = ['node', 'cloudyard', '--version'];
    process.on('exit', () => console.log(JSON.stringify(${loaded})));
    await import(${JSON.stringify(urlOf('cloudyard.ts'))});`;
  expect(run(program)).toMatch(/^cloudyard \S+\n\[\]\n$/);
});

const urlOf = (name: string) => pathToFileURL(join(root, 'src', 'main', name)).href;

/** The value of an expression after the import of modules of src/main. */
function evaluated(expression: string, ...modules: string[]): unknown {
  const imports = modules.map((name) => `await import(${JSON.stringify(urlOf(name))});`);
  return JSON.parse(run(`${imports.join('')} console.log(JSON.stringify(${expression}));`));
}

/** The output of a program. */
function run(program: string): string {
  const args = ['--import', preload, '--input-type=module', '--eval', program];
  return execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
}
