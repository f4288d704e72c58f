/** What the first process does with errors of the others. Their behaviour is in test/e2e/several-processes.test.ts. */
import { EventEmitter } from 'node:events';
import { expect, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { createMetrics } from '../platform/metrics.ts';
import type { ServerProcess } from '../platform/server-processes.ts';
import { startApiProcesses } from './api-processes.ts';

/** Starts this number of processes, which are the workers in turn. `forks`: how many were started so far. */
function start(
  count: number,
  workers: EventEmitter[],
  { pid, pingEveryMs }: { pid?: number; pingEveryMs?: number } = {},
) {
  let forks = 0;
  const settings: Record<string, string>[] = [];
  const fork = (own: Record<string, string>) => {
    settings.push(own);
    // One that never listens follows the last.
    const worker = workers[forks++] ?? new EventEmitter();
    let isDead = false;
    worker.once('exit', () => (isDead = true));
    return Object.assign(worker, {
      process: { pid, kill: (signal: string) => ends(worker, null, signal) },
      isDead: () => isDead,
      send: (message: unknown) => worker.emit('sent', message),
    }) as unknown as ServerProcess;
  };
  const metrics = createMetrics();
  return {
    starting: startApiProcesses(count, metrics, silentLogger, { fork, pingEveryMs }),
    metrics,
    settings,
    forks: () => forks,
  };
}

function ends(worker: EventEmitter, code: number | null, signal: string | null): void {
  worker.emit('disconnect');
  worker.emit('exit', code, signal);
}

const listens = (worker: EventEmitter, url = 'http://127.0.0.1:8080') =>
  worker.emit('message', { cloudyard: 'call', id: 1, name: 'listening', value: url });

/** Answers requests for metrics, as a process that has served this many requests and has as many event streams. */
async function serves(worker: EventEmitter, requests: number): Promise<void> {
  const metrics = createMetrics();
  for (let i = 0; i < requests; i++) metrics.observeRequest('getRegion', 200, 0.1);
  metrics.watchEventStreams(() => requests);
  const value = await metrics.json();
  worker.on('sent', ({ name, id }: { name?: string; id: number }) => {
    if (name === 'metrics') worker.emit('message', { cloudyard: 'result', id, value });
  });
}

/** The numbers of requests and event streams that /metrics shows when this process is asked for it. */
async function shown(worker: EventEmitter): Promise<{ requests: number; streams: number }> {
  const { promise, resolve } = Promise.withResolvers<string>();
  worker.on('sent', ({ cloudyard, id, value }: { cloudyard: string; id: number; value: string }) => {
    if (cloudyard === 'result' && id === 2) resolve(value);
  });
  worker.emit('message', { cloudyard: 'call', id: 2, name: 'metrics' });
  const text = await promise;
  const valueOf = (name: string) => Number(new RegExp(`^${name}\\b.* (\\d+)$`, 'm').exec(text)![1]);
  return {
    requests: valueOf('cloudyard_http_request_seconds_count'),
    streams: valueOf('cloudyard_event_streams'),
  };
}

it('a message to a process that has just died does not end the first process', async () => {
  const worker = new EventEmitter();
  const { starting } = start(1, [worker], { pid: 4711 });
  listens(worker);
  const { url, stop } = await starting;
  expect(url).toBe('http://127.0.0.1:8080');
  const stopping = stop();
  // Without a listener this would be an uncaught exception.
  worker.emit('error', new Error('write EPIPE'));
  ends(worker, null, 'SIGKILL');
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
  for (const one of [first, third]) ends(one, 0, null);
  await stopping;
});

it('further processes listen on the port of HTTPS, which the URL of the first one omits', async () => {
  const workers = [new EventEmitter(), new EventEmitter()] as const;
  const { starting, settings } = start(2, [...workers]);
  listens(workers[0], 'https://127.0.0.1:443');
  await expect.poll(() => settings).toEqual([{}, { CLOUDYARD_PORT: '443' }]);
  listens(workers[1], 'https://127.0.0.1:443');
  await starting;
});

it('counters keep their values when a process ends or does not respond, and gauges do not', async () => {
  const workers = [new EventEmitter(), new EventEmitter(), new EventEmitter()] as const;
  const { starting, forks } = start(2, [...workers]);
  await serves(workers[0], 2);
  await serves(workers[1], 3);
  listens(workers[0]);
  await expect.poll(forks).toBe(2);
  listens(workers[1]);
  await starting;
  expect(await shown(workers[0])).toEqual({ requests: 5, streams: 5 });
  workers[1].emit('exit', null, 'SIGKILL');
  await expect.poll(forks).toBe(3);
  expect(await shown(workers[0])).toEqual({ requests: 5, streams: 2 });
  listens(workers[2]);
  await serves(workers[2], 1);
  expect(await shown(workers[0])).toEqual({ requests: 6, streams: 3 });
  workers[2].removeAllListeners('sent');
  expect(await shown(workers[0])).toEqual({ requests: 6, streams: 2 });
});

it('a process that does not respond is replaced, and one that responds is not', async () => {
  const workers = [new EventEmitter(), new EventEmitter(), new EventEmitter()] as const;
  const [healthy, frozen, third] = workers;
  const { starting, forks } = start(2, [...workers], { pingEveryMs: 10 });
  let pings = 0;
  healthy.on('sent', ({ name, id }: { name?: string; id: number }) => {
    if (name !== 'ping') return;
    pings += 1;
    healthy.emit('message', { cloudyard: 'result', id });
  });
  listens(healthy);
  await expect.poll(forks).toBe(2);
  listens(frozen);
  const { stop } = await starting;
  await expect.poll(forks).toBe(3);
  await expect.poll(() => pings).toBeGreaterThan(20);
  expect(forks()).toBe(3);
  // Nor does a stop wait for it.
  listens(third);
  const stopping = stop();
  ends(healthy, 0, null);
  await stopping;
});
