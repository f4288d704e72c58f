import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runChild } from './child-process.ts';

let folder: string;

beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'server-processes-'))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/**
 * A program whose further processes respond to every request, and have two connections at most. `test` runs in the first process,
 * and prints a JSON text.
 */
async function run(test: string): Promise<unknown> {
  const file = join(folder, 'program.mjs');
  const module = JSON.stringify(new URL('server-processes.ts', import.meta.url));
  const program = `import { readFileSync } from 'node:fs';
    import { createServer, get } from 'node:http';
    import { connect } from 'node:net';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { forkServerProcess, isServerProcess } from ${module};
    let port;
    const start = () => new Promise((resolve) => {
      const worker = forkServerProcess({});
      worker.once('listening', (address) => resolve(worker, (port = address.port)));
    });
    const request = () => new Promise((resolve) => {
      const sent = get({ port, host: '127.0.0.1', agent: false }, (response) => resolve(response.resume().statusCode));
      sent.once('error', ({ code }) => resolve(code));
    });
    const freeze = async ({ process: { pid } }) => {
      process.kill(pid, 'SIGSTOP');
      while (!/\\) T /.test(readFileSync('/proc/' + pid + '/stat', 'utf8'))) await sleep(10);
    };
    const within = (promise) => Promise.race([promise, sleep(10_000, 'none')]);
    const server = createServer((_, response) => response.end());
    server.maxConnections = 2;
    if (isServerProcess) server.listen(0, '127.0.0.1');
    else {
      ${test}
      process.exit();
    }`;
  writeFileSync(file, program);
  const { stdout } = await runChild(process.execPath, ['--no-warnings', file], { timeout: 40_000 });
  return JSON.parse(stdout);
}

it('distributes a connection again if a process is killed before it has accepted it', async () => {
  const test = `const [frozen] = await Promise.all([start(), start()]);
    await freeze(frozen);
    const responses = [request(), request(), request()];
    await Promise.race(responses);
    frozen.process.kill('SIGKILL');
    console.log(JSON.stringify(await within(Promise.all(responses))));`;
  expect(await run(test)).toEqual([200, 200, 200]);
});

it('resets such a connection if no other process listens', async () => {
  const test = `const frozen = await start();
    await freeze(frozen);
    const response = request();
    await sleep(500);
    frozen.process.kill('SIGKILL');
    console.log(JSON.stringify(await within(response)));`;
  expect(await run(test)).toBe('ECONNRESET');
});

it('emits the disconnection of such a process', async () => {
  const test = `const [frozen] = await Promise.all([start(), start()]);
    await freeze(frozen);
    const responses = [request(), request()];
    await Promise.race(responses);
    const disconnected = new Promise((resolve) => frozen.once('disconnect', () => resolve('disconnected')));
    frozen.process.kill('SIGKILL');
    console.log(JSON.stringify(await within(disconnected)));`;
  expect(await run(test)).toBe('disconnected');
});

it('closes a connection that all processes decline, because they are full', async () => {
  const test = `await Promise.all([start(), start()]);
    let [open, bothClosed] = [6, Promise.withResolvers()];
    for (let i = 0; i < 6; i++) {
      const socket = connect(port, '127.0.0.1').on('error', () => {});
      socket.once('close', () => --open > 4 || bothClosed.resolve());
    }
    await within(bothClosed.promise);
    await sleep(300);
    console.log(open);`;
  expect(await run(test)).toBe(4);
});
