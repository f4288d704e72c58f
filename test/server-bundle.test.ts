/** The bundle that runs in place of the sources of a checkout: bin/server-bundle.mjs, in a small checkout. */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { root } from '../src/platform/program-files.ts';

let checkout: string;
let modules: string;
let bundles: string;

beforeEach(() => {
  checkout = mkdtempSync(join(tmpdir(), 'cloudyard-bundle-'));
  modules = join(checkout, 'node_modules');
  bundles = join(checkout, '.server-bundle');
  mkdirSync(modules);
  cpSync(join(root, 'bin'), join(checkout, 'bin'), { recursive: true });
  for (const name of ['package.json', 'package-lock.json']) cpSync(join(root, name), join(checkout, name));
  for (const name of ['rolldown', '@rolldown', '@oxc-project', 'node']) {
    symlinkSync(join(root, 'node_modules', name), join(modules, name));
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
  rmSync(join(modules, 'rolldown'));
  expect(bundle()).toBe(first);
  symlinkSync(join(root, 'node_modules', 'rolldown'), join(modules, 'rolldown'));
  write('main/text.test.ts', 'no source of the server');
  // As Emacs locks a file.
  symlinkSync('user@host.1234', join(checkout, 'src', 'main', '.#text.ts'));
  expect(bundle()).toBe(first);
  write('main/text.ts', `export const text: string = 'second';\n`);
  expect(output(bundle())).toBe('second');
  expect(output(first)).toBe('first');
  write('main/text.ts', `export const text: string = 'first';\n`);
  expect(output(bundle())).toBe('first');
});

it('is not made of sources with an error, without a bundler, or where it cannot be written', () => {
  write('main/text.ts', 'export const');
  expect(bundle()).toBeNull();
  write('main/text.ts', `export const text: string = 'third';\n`);
  rmSync(join(modules, 'rolldown'));
  expect(bundle()).toBeNull();
  symlinkSync(join(root, 'node_modules', 'rolldown'), join(modules, 'rolldown'));
  rmSync(bundles, { recursive: true });
  writeFileSync(bundles, '');
  expect(bundle()).toBeNull();
  rmSync(bundles);
  const third = bundle()!;
  expect(output(third)).toBe('third');
  const folder = dirname(dirname(third));
  rmSync(folder, { recursive: true });
  writeFileSync(folder, '');
  expect(bundle()).toBeNull();
  expect(readdirSync(bundles)).toEqual([basename(folder)]);
});

it('is that of this checkout also if it uses the packages of another one, and outlives an install', () => {
  const elsewhere = join(checkout, 'elsewhere');
  renameSync(modules, elsewhere);
  symlinkSync('elsewhere', modules);
  const script = bundle();
  expect(dirname(dirname(dirname(script!)))).toBe(bundles);
  rmSync(elsewhere, { recursive: true });
  expect(output(script)).toBe('first');
});

it('that is interrupted while it is made ends the command', () => {
  writeFileSync(
    join(checkout, 'bin', 'bundle.mjs'),
    `process.kill(process.pid, 'SIGTERM'); setInterval(() => {}, 1000);`,
  );
  expect(bundle).toThrow(expect.objectContaining({ status: 143 }));
});

it('is kept with the four before it, and while a process runs it', async () => {
  write(
    'main/cloudyard.ts',
    `import { text } from './text.ts';\nif (process.argv[2]) setInterval(() => text, 1000);\n`,
  );
  const script = bundle()!;
  const server = spawn(process.execPath, [script, 'start'], { stdio: 'ignore' });
  const ended = new Promise((resolve) => server.once('exit', resolve));
  const edit = (n: number) => {
    write('main/text.ts', `export const text: string = 'edit ${n}';\n`);
    bundle();
    return readdirSync(bundles);
  };
  const running = basename(dirname(dirname(script)));
  try {
    for (const n of [1, 2, 3, 4]) edit(n);
    expect(edit(5)).toHaveLength(6);
    expect(edit(6)).toHaveLength(6);
    expect(readdirSync(bundles)).toContain(running);
  } finally {
    server.kill();
    await ended;
  }
  expect(edit(7)).toHaveLength(5);
  expect(readdirSync(bundles)).not.toContain(running);
});
