/** Log lines of one turn are written together. */
import { execFile, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { expect, it, onTestFinished } from 'vitest';
import { requestWriter } from './log.ts';

const logger = new URL('log.ts', import.meta.url).href;

/** The lines that a process prints which runs `work` with a logger. */
async function linesOf(work: string): Promise<{ n?: number; msg: string; err?: { message: string; stack: string } }[]> {
  const program = `import { createLogger } from ${JSON.stringify(logger)};
    const log = createLogger({ level: 'info', pretty: false });
    ${work}`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]).catch(
    (error: { stdout: string }) => error,
  );
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

const hundred = Array.from({ length: 100 }, (_, n) => n);

it('a process that exits has written all its lines, in order', async () => {
  const lines = await linesOf(`for (let n = 0; n < 100; n++) log.info({ n }, 'line'); process.exit(3);`);
  expect(lines.map(({ n }) => n)).toEqual(hundred);
});

it('a process that an error ends has written all its lines', async () => {
  const lines = await linesOf(`for (let n = 0; n < 100; n++) log.info({ n }, 'line'); throw new Error('end');`);
  expect(lines.map(({ n }) => n)).toEqual(hundred);
});

it('lines are written while the process runs', async () => {
  const lines = await linesOf(
    `log.info({ n: 0 }, 'line'); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 50);`,
  );
  expect(lines.map(({ n }) => n)).toEqual([0]);
});

it('a process whose log is on a full disk continues, and writes again when there is space', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'log');
  // What is opened gets the lowest free number, that of standard output.
  await linesOf(`
    const { closeSync, openSync } = await import('node:fs');
    const { setTimeout: sleep } = await import('node:timers/promises');
    closeSync(1);
    openSync('/dev/full', 'w');
    for (let n = 0; n < 3; n++, await sleep(10)) log.info({ n }, 'line');
    closeSync(1);
    openSync(${JSON.stringify(file)}, 'w');
    log.info({ n: 3 }, 'line');`);
  const written = readFileSync(file, 'utf8').trim().split('\n');
  expect(written.map((line) => JSON.parse(line).n)).toEqual([0, 3]);
});

it('a process whose terminal is gone continues', async () => {
  const program = `import { createLogger } from ${JSON.stringify(logger)};
    import { setTimeout as sleep } from 'node:timers/promises';
    const log = createLogger({ level: 'info', pretty: true });
    for (let n = 0; n < 20; n++, await sleep(50)) log.info({ n }, 'line');
    process.exit(3);`;
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const args = ['--input-type=module', '--eval', program];
  const ended = spawnSync(process.execPath, args, { stdio: ['ignore', full, 'pipe'], encoding: 'utf8' });
  expect([ended.status, ended.stderr]).toEqual([3, '']);
});

it('the message of an error names its causes, but each text once', async () => {
  const lines = await linesOf(`
    const cause = new Error('the name nowhere.test does not resolve');
    log.info({ err: new Error(cause.message, { cause }) }, 'line');
    log.info({ err: new Error('2 of 3 failed: ' + cause.message, { cause }) }, 'line');
    log.info({ err: new Error('not sent', { cause: new Error('not connected', { cause }) }) }, 'line');
    log.info({ err: new Error('', { cause }) }, 'line');
    const circular = new Error('a');
    circular.cause = new Error('b', { cause: circular });
    log.info({ err: circular }, 'line');
    log.info({ err: new Error('of the driver', { cause: 'a text' }) }, 'line');
    log.info({ err: 'a text' }, 'line');
    log.child({ part: 'a' }).info(new Error(cause.message, { cause }));`);
  expect(lines.map(({ err }) => err?.message ?? err)).toEqual([
    'the name nowhere.test does not resolve',
    '2 of 3 failed: the name nowhere.test does not resolve',
    'not sent: not connected: the name nowhere.test does not resolve',
    'the name nowhere.test does not resolve',
    'a: b',
    'of the driver',
    'a text',
    'the name nowhere.test does not resolve',
  ]);
  expect(lines[0]!.err!.stack).toContain('caused by: ');
});

it('frequent lines are as pino would write them', () => {
  const lines: string[] = [];
  const log = pino({ level: 'info', base: { pid: 7 } }, { write: (line: string) => lines.push(line) }).child({
    part: 'a',
  });
  const line = { reqId: 'x', method: 'GET', url: '/a?b="\\\n\u{1f600}', status: 200, ms: 0.25 };
  const write = requestWriter(log);
  for (const tokenId of [undefined, 7, '"s']) {
    write('debug', { ...line, tokenId });
    write('info', { ...line, tokenId });
    log.info({ ...line, tokenId }, 'request');
    const [own, other] = lines.splice(0).map((each) => each.replace(/"time":\d+/, ''));
    expect(own).toBe(other);
    expect(own).toContain('"pid":7');
  }
});
