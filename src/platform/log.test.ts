/** Log lines of one turn are written together. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { lineWriter } from './log.ts';

const logger = new URL('log.ts', import.meta.url).href;

/** The lines that a process prints which runs `work` with a logger. */
async function linesOf(work: string): Promise<{ n?: number; msg: string }[]> {
  const program = `import { createLogger } from ${JSON.stringify(logger)};
    const log = createLogger({ level: 'info', pretty: false });
    ${work}`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]).catch(
    (error: { stdout: string }) => error,
  );
  return stdout
    .trim()
    .split('\n')
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

it('frequent lines are as pino would write them', () => {
  const lines: string[] = [];
  const log = pino({ level: 'info', base: { pid: 7 } }, { write: (line: string) => lines.push(line) }).child({
    part: 'a',
  });
  const fields = { reqId: 'x', url: '/a?b="\\\n\u{1f600}', ms: 0.25, tokenId: undefined };
  const write = lineWriter(log, 'request');
  write('debug', fields);
  write('info', fields);
  log.info(fields, 'request');
  const [own, other] = lines.map((line) => line.replace(/"time":\d+/, ''));
  expect(lines).toHaveLength(2);
  expect(own).toBe(other);
});
