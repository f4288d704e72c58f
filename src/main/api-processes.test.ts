/** What the first process does with errors of the others. Their behaviour is in test/e2e/several-processes.test.ts. */
import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { createMetrics } from '../platform/metrics.ts';
import type { ServerProcess } from '../platform/server-processes.ts';
import { startApiProcesses } from './api-processes.ts';

/** Starts this number of processes, which are the workers in turn. `forks`: how many were started so far. */
function start(count: number, workers: EventEmitter[], pid?: number) {
  let forks = 0;
  const fork = () => {
    // One that never listens follows the last.
    const worker = workers[forks++] ?? new EventEmitter();
    let isDead = false;
    worker.once('exit', () => (isDead = true));
    return Object.assign(worker, {
      process: { pid },
      isDead: () => isDead,
      send: () => {},
    }) as unknown as ServerProcess;
  };
  return { starting: startApiProcesses(count, createMetrics(), silentLogger, fork), forks: () => forks };
}

const listens = (worker: EventEmitter) =>
  worker.emit('message', { cloudyard: 'call', id: 1, name: 'listening', value: 'http://127.0.0.1:8080' });

it('a message to a process that has just died does not end the first process', async () => {
  const worker = new EventEmitter();
  const { starting } = start(1, [worker], 4711);
  listens(worker);
  const { url, stop } = await starting;
  expect(url).toBe('http://127.0.0.1:8080');
  const stopping = stop();
  // Without a listener this would be an uncaught exception.
  worker.emit('error', new Error('write EPIPE'));
  worker.emit('disconnect');
  worker.emit('exit', null, 'SIGKILL');
  await stopping;
});

it('a process that cannot be started is an error, and not waited for', async () => {
  const worker = new EventEmitter();
  const { starting } = start(1, [worker]);
  worker.emit('error', new Error('spawn EMFILE'));
  await expect(starting).rejects.toThrow('spawn EMFILE');
});

it('a further process that does not start is started again', async () => {
  const workers = [new EventEmitter(), new EventEmitter(), new EventEmitter()];
  const [first, second, third] = workers as [EventEmitter, EventEmitter, EventEmitter];
  const { starting, forks } = start(2, workers);
  listens(first);
  await expect.poll(forks).toBe(2);
  // For example because PostgreSQL has no connection left.
  second.emit('exit', 1, null);
  const { url, stop } = await starting;
  expect(url).toBe('http://127.0.0.1:8080');
  await expect.poll(forks).toBe(3);
  listens(third);
  const stopping = stop();
  for (const one of [first, third]) {
    one.emit('disconnect');
    one.emit('exit', 0, null);
  }
  await stopping;
});
