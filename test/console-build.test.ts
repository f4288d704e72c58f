import { execFile } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { root } from '../src/platform/program-files.ts';

let parent: string;
let folder: string;

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'cloudyard-console-build-'));
  folder = join(parent, 'console');
  mkdirSync(join(folder, 'src'), { recursive: true });
  writeFileSync(join(folder, 'index.html'), '<script type="module" src="/src/main.js"></script>');
  writeSource("console.log('first');");
});
afterEach(() => rmSync(parent, { recursive: true }));

const writeSource = (text: string) => writeFileSync(join(folder, 'src', 'main.js'), text);
const startPage = () => join(folder, 'dist', 'index.html');
/** The script of the build. */
function builtScript(): string {
  const [, path = ''] = /src="\/(assets\/[^"]+)"/.exec(readFileSync(startPage(), 'utf8'))!;
  return readFileSync(join(folder, 'dist', path), 'utf8');
}

function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const script = join(root, 'bin', 'console-build.mjs');
    execFile(process.execPath, [script, ...args, folder], (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
  });
}

const nothing = { code: 0, stdout: '', stderr: '' };
const built = { code: 0, stdout: expect.stringMatching(/^built the console in \d+\.\d s\n$/), stderr: '' };

/** Makes the build older than every source. */
const age = () => utimesSync(startPage(), new Date(0), new Date(0));

/** Root can build as another account if that account can read the modules of this checkout, which it cannot below /root. */
function canRunForOthers(): boolean {
  if (process.getuid?.() !== 0) return false;
  for (let path = root; path !== '/'; path = dirname(path)) if (!(statSync(path).mode & 0o001)) return false;
  return true;
}

/** The lock names the start time of its holder there. */
const isLinux = process.platform === 'linux';

describe('the build of the console', () => {
  it('is made when it is missing, when a source is newer, and on request', async () => {
    expect(await run()).toEqual(built);
    expect(builtScript()).toContain('first');
    expect(await run()).toEqual(nothing);
    age();
    writeSource("console.log('second');");
    expect(await run()).toEqual(built);
    expect(builtScript()).toContain('second');
    expect(await run()).toEqual(nothing);
    expect(await run('--force')).toEqual(built);
    age();
    writeFileSync(join(parent, 'openapi.json'), '{}');
    expect(await run()).toEqual(built);
    expect(existsSync(join(folder, '.dist-old')) || existsSync(join(folder, '.building'))).toBe(false);
  });

  it('that fails leaves the previous one, and the reason', async () => {
    expect(await run()).toEqual(built);
    age();
    writeSource('this is not a program');
    const failed = await run();
    expect([failed.code, failed.stdout]).toEqual([1, '']);
    expect(failed.stderr).toContain('main.js');
    expect(builtScript()).toContain('first');
    writeSource("console.log('third');");
    expect(await run()).toEqual(built);
    expect(builtScript()).toContain('third');
  });

  it('is made once if two processes need it', async () => {
    const outcomes = await Promise.all([run(), run(), run()]);
    expect(outcomes.map(({ stdout }) => stdout).filter(Boolean)).toHaveLength(1);
    expect(outcomes.every(({ code, stderr }) => code === 0 && stderr === '')).toBe(true);
    expect(builtScript()).toContain('first');
  });

  it('waits for a process that builds for so long that it does not renew its lock', { skip: !isLinux }, async () => {
    const lock = join(folder, '.building');
    mkdirSync(lock);
    const fields = readFileSync(`/proc/${process.pid}/stat`, 'utf8').split(') ').at(-1)!.split(' ');
    writeFileSync(join(lock, 'holder'), `${process.pid} ${fields[19]}`);
    const before = new Date(Date.now() - 60_000);
    utimesSync(lock, before, before);
    let ended = false;
    const waiting = run().finally(() => (ended = true));
    await sleep(3000);
    expect([ended, existsSync(lock), existsSync(startPage())]).toEqual([false, true, false]);
    rmSync(lock, { recursive: true });
    expect(await waiting).toEqual(built);
  });

  it('is made although a process was killed while it held the lock', async () => {
    const lock = join(folder, '.building');
    mkdirSync(lock);
    const before = new Date(Date.now() - 60_000);
    utimesSync(lock, before, before);
    expect(await run()).toEqual(built);
  });

  it('is kept by a package that has no sources', async () => {
    mkdirSync(join(folder, 'dist'));
    rmSync(join(folder, 'index.html'));
    writeFileSync(startPage(), 'built elsewhere');
    expect(await run()).toEqual(nothing);
    rmSync(folder, { recursive: true });
    expect(await run()).toEqual(nothing);
  });

  it('belongs to the owner of the sources, not to root', { skip: !canRunForOthers() }, async () => {
    chmodSync(parent, 0o755);
    const owner = 65_534;
    for (const path of ['', 'src', 'index.html', 'src/main.js']) chownSync(join(folder, path), owner, owner);
    expect(await run()).toEqual(built);
    expect(statSync(startPage()).uid).toBe(owner);
  });
});
