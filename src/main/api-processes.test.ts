/** What the first process does with errors of the others. Their behaviour is in test/e2e/several-processes.test.ts. */
import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { createMetrics } from '../platform/metrics.ts';
import type { ServerProcess } from '../platform/server-processes.ts';
import { startApiProcesses } from './api-processes.ts';

/** Starts one process, which is `worker`. */
function start(worker: EventEmitter, pid?: number) {
  let isDead = false;
  const one = Object.assign(worker, { process: { pid }, isDead: () => isDead, send: () => {} });
  worker.once('exit', () => (isDead = true));
  return startApiProcesses(1, createMetrics(), silentLogger, () => one as unknown as ServerProcess);
}

it('a message to a process that has just died does not end the first process', async () => {
  const worker = new EventEmitter();
  const starting = start(worker, 4711);
  worker.emit('message', { cloudyard: 'call', id: 1, name: 'listening', value: 'http://127.0.0.1:8080' });
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
  const starting = start(worker);
  worker.emit('error', new Error('spawn EMFILE'));
  await expect(starting).rejects.toThrow('spawn EMFILE');
});
