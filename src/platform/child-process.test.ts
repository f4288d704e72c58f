import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { childEnvironment, forbidCoreDumps, runChild, runChildSync, spawnChild, startChild } from './child-process.ts';

const source = join(import.meta.dirname, '..');
const secrets = {
  CLOUDYARD_BOOTSTRAP_TOKEN: 'a$b',
  DATABASE_URL: 'postgres://a:b@c/d',
  PGPASSWORD: 'e',
  PATHOLOGY: 'f',
};

afterEach(() => vi.unstubAllEnvs());

function stub(variables: Record<string, string>): void {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
}

test('no other module of the server starts processes', () => {
  const starts = /child_process|node:cluster|['"]cluster['"]|process\.(binding|execve)\b/;
  const found = readdirSync(source, { recursive: true, encoding: 'utf8' })
    // Tests, and the helpers that only they use, start what they like.
    .filter((file) => file.endsWith('.ts') && !/(^|\/)test-|\.test\.ts$/.test(file))
    .filter((file) => starts.test(readFileSync(join(source, file), 'utf8')));
  expect(found.sort()).toEqual(['platform/child-process.ts', 'platform/server-processes.ts']);
});

test('a child inherits the listed variables and gets those of its caller', () => {
  stub({ ...secrets, LC_MESSAGES: 'C', TZ: 'UTC', HOME: '/root' });
  const environment = childEnvironment({ TZ: 'Asia/Baku', OWN: '1' });
  expect(environment).toMatchObject({ PATH: process.env['PATH'], LC_MESSAGES: 'C', TZ: 'Asia/Baku', OWN: '1' });
  const inherited = /^(PATH|LD_LIBRARY_PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|OWN)$/;
  expect(Object.keys(environment).filter((name) => !inherited.test(name))).toEqual([]);
});

test('whichever way a child is started, it has no other environment', async () => {
  stub({ ...secrets, LC_MESSAGES: 'C' });
  const expected = Object.entries(childEnvironment({ OWN: '1' }))
    .map(([name, value]) => `${name}=${value}`)
    .sort();
  const env = { OWN: '1' };
  expect(runChildSync('env', [], { env }).trim().split('\n').sort()).toEqual(expected);
  expect((await runChild('env', [], { env })).stdout.trim().split('\n').sort()).toEqual(expected);
  const child = spawnChild('env', [], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  for await (const part of child.stdout!) output += part;
  expect(output.trim().split('\n').sort()).toEqual(expected);
});

test('a child that does not start is an error of its caller only, also without descriptors', async () => {
  await expect(startChild('/nonexistent', [])).rejects.toMatchObject({ code: 'ENOENT' });
  const module = JSON.stringify(new URL('child-process.ts', import.meta.url));
  const script = `import { openSync } from 'node:fs';
    import { startChild } from ${module};
    try { for (;;) openSync('/dev/null'); } catch {}
    startChild('true', []).catch(({ code }) => console.log(code));`;
  const node = [process.execPath, '--input-type=module', '--eval', script];
  const result = spawnSync('prlimit', ['--nofile=64:64', ...node], { encoding: 'utf8' });
  expect(result).toMatchObject({ status: 0, stdout: 'EMFILE\n' });
});

describe('after forbidCoreDumps', () => {
  test('neither a process that aborts nor its child leaves a core file', (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudyard-core-'));
    const coreFiles = () => readdirSync(folder).filter((name) => name.startsWith('core'));
    const abort = (...command: string[]) =>
      spawnSync('prlimit', ['--core=unlimited', ...command], { cwd: folder, encoding: 'utf8' });
    try {
      const abortingChild = 'kill -ABRT $$';
      abort('sh', '-c', abortingChild);
      if (coreFiles().length === 0) return context.skip('this machine writes no core files into the current folder');
      for (const name of coreFiles()) rmSync(join(folder, name));
      const module = JSON.stringify(new URL('child-process.ts', import.meta.url));
      const script = `import { forbidCoreDumps, runChildSync } from ${module};
        forbidCoreDumps();
        try { runChildSync('sh', ['-c', '${abortingChild}']); } catch ({ signal }) { console.log(signal); }
        process.abort();`;
      const aborted = abort(process.execPath, '--input-type=module', '--eval', script);
      expect(aborted).toMatchObject({ signal: 'SIGABRT', stdout: 'SIGABRT\n' });
      expect(coreFiles()).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('neither this process nor a child may write a core file', () => {
    const [, before] = /^Max core file size +\S+ +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))!;
    // Not 0, with which the kernel still passes the memory to a program that core_pattern names. Only root may raise it.
    const limit = before === '0' ? '0 +0' : '1 +1';
    forbidCoreDumps();
    for (const file of ['/proc/self/limits', `/proc/${process.pid}/limits`]) {
      expect(runChildSync('cat', [file])).toMatch(new RegExp(`^Max core file size +${limit} `, 'm'));
    }
  });
});
