import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import { ensureServiceAccount, findServiceAccount } from './service-account.ts';

const asRoot = process.getuid?.() === 0;
const name = `cy-test-${process.pid}`;

afterEach(() => {
  if (findServiceAccount(name)) execFileSync('userdel', [name]);
});

test.runIf(asRoot)(
  'an account is created once, with its own group and without login shell and home, and then found',
  () => {
    const account = ensureServiceAccount(name);
    const [line] = linesOf('/etc/passwd');
    expect(line).toMatch(new RegExp(`^${name}:x:${account.uid}:${account.gid}::/nonexistent:.*/(nologin|false)$`));
    expect(linesOf('/etc/group')).toEqual([`${name}:x:${account.gid}:`]);
    expect(linesOf('/etc/shadow')[0]).toMatch(new RegExp(`^${name}:!`));
    expect(ensureServiceAccount(name)).toEqual(account);
    expect(linesOf('/etc/passwd')).toHaveLength(1);
  },
);

test.runIf(asRoot)('concurrent processes that need the same account all get the same one', async () => {
  const module = new URL('service-account.ts', import.meta.url);
  const script = `import { ensureServiceAccount } from '${module}'; console.log(ensureServiceAccount('${name}').uid);`;
  const ensure = () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  const answers = await Promise.all(Array.from({ length: 6 }, ensure));
  const { uid } = findServiceAccount(name)!;
  expect(answers.map(({ stdout }) => Number(stdout))).toEqual(Array.from({ length: 6 }, () => uid));
});

test.runIf(asRoot)('an existing group with the name of the account becomes its group', () => {
  execFileSync('groupadd', ['--system', name]);
  const gid = Number(linesOf('/etc/group')[0]!.split(':')[2]);
  expect(ensureServiceAccount(name).gid).toBe(gid);
});

test('an account that cannot be created is an error with the command that creates it', () => {
  const wanted = asRoot ? 'not a name' : name;
  expect(() => ensureServiceAccount(wanted)).toThrow(
    new RegExp(`cannot create the system account ${wanted} \\(.+\\); create it and start again: useradd --system .+`),
  );
});

test('root is not a service account', () => {
  expect(() => ensureServiceAccount('root')).toThrow('the account root has uid 0');
});

function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith(`${name}:`));
}
