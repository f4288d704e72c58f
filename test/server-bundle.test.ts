/** The bundle that runs in place of the sources of a checkout: bin/server-bundle.mjs, in a small checkout. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { root } from '../src/platform/program-files.ts';

let checkout: string;

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'cloudyard-bundle-'));
  cpSync(join(root, 'bin'), join(checkout, 'bin'), { recursive: true });
  for (const name of ['package.json', 'package-lock.json']) cpSync(join(root, name), join(checkout, name));
  for (const name of ['rolldown', '@rolldown', '@oxc-project', 'node']) {
    mkdirSync(join(checkout, 'node_modules'), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(checkout, 'node_modules', name));
  }
  write('main/cloudyard.ts', `import { text } from './text.ts';\nconsole.log(text satisfies string);\n`);
  write('main/text.ts', `export const text: string = 'first';\n`);
});

afterEach(() => rmSync(checkout, { recursive: true }));

function write(path: string, text: string): void {
  mkdirSync(dirname(join(checkout, 'src', path)), { recursive: true });
  writeFileSync(join(checkout, 'src', path), text);
}

/** Null: there is none, and the sources run. */
function bundle(): string | null {
  const module = pathToFileURL(join(checkout, 'bin', 'server-bundle.mjs')).href;
  const program = `const { serverBundle } = await import('${module}'); console.log((await serverBundle())?.script ?? '');`;
  const args = ['--input-type=module', '--eval', program];
  return execFileSync(process.execPath, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim() || null;
}

const output = (script: string | null) => execFileSync(process.execPath, [script!], { encoding: 'utf8' }).trim();

it('is made once for the sources as they are, and again after a change', () => {
  const first = bundle();
  expect(output(first)).toBe('first');
  rmSync(join(checkout, 'node_modules', 'rolldown'));
  expect(bundle()).toBe(first);
  symlinkSync(join(root, 'node_modules', 'rolldown'), join(checkout, 'node_modules', 'rolldown'));
  write('main/text.test.ts', 'no source of the server');
  expect(bundle()).toBe(first);
  write('main/text.ts', `export const text: string = 'second';\n`);
  expect(output(bundle())).toBe('second');
  expect(output(first)).toBe('first');
  write('main/text.ts', `export const text: string = 'first';\n`);
  expect(output(bundle())).toBe('first');
});

it('is not made of sources with a fault, without a bundler, or in the packages of another checkout', () => {
  write('main/text.ts', 'export const');
  expect(bundle()).toBeNull();
  write('main/text.ts', `export const text: string = 'third';\n`);
  const modules = join(checkout, 'node_modules');
  rmSync(join(modules, 'rolldown'));
  expect(bundle()).toBeNull();
  symlinkSync(join(root, 'node_modules', 'rolldown'), join(modules, 'rolldown'));
  cpSync(modules, join(checkout, 'elsewhere'), { recursive: true });
  rmSync(modules, { recursive: true });
  symlinkSync(join(checkout, 'elsewhere'), modules);
  expect(bundle()).toBeNull();
  rmSync(modules);
  cpSync(join(checkout, 'elsewhere'), modules, { recursive: true });
  expect(output(bundle())).toBe('third');
});

it('is kept with the four before it, for servers that run', () => {
  for (let i = 0; i < 6; i++) {
    write('main/text.ts', `export const text: string = 'edit ${i}';\n`);
    bundle();
  }
  expect(readdirSync(join(checkout, 'node_modules', '.cache', 'server-bundle'))).toHaveLength(5);
  expect(output(bundle())).toBe('edit 5');
});
