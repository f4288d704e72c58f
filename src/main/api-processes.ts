/**
 * The API in several processes on one port (CLOUDYARD_PROCESSES). The first process starts and replaces them, adds up their
 * metrics and keeps the request rates of clients; api-process.ts is the other side.
 *
 * Failure modes: a process that dies is replaced, and the others are not affected. Once one process listens, another one that
 * fails to start is started again, for example if PostgreSQL has no free connection. One that does not respond, for example because it
 * is frozen, is ended after a minute. If the first process dies, the others end.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { createRateBuckets } from '../http/request-rate.ts';
import type { Logger } from '../platform/log.ts';
import { type Metrics, type MetricsJson, withoutGauges } from '../platform/metrics.ts';
import { portOf } from '../platform/own-ports.ts';
import { type Calls, openCalls } from '../platform/process-calls.ts';
import { bindToProcessor, usableProcessors } from '../platform/processor-affinity.ts';
import { forkServerProcess, type ServerProcess } from '../platform/server-processes.ts';
import { within } from '../platform/within.ts';

/** The API server, in this process or in others. */
export interface ApiServer {
  url: string;
  /** Ends the hold of requests. */
  admitRequests(): void;
  /** Answers the requests that were read, and ends all other processes. */
  stop(): Promise<void>;
}

interface ApiProcess {
  worker: ServerProcess;
  calls: Calls;
  /** The one that it is bound to. */
  processor: number | undefined;
  /** As it reported them last, without gauges if it does not respond. */
  metrics: MetricsJson;
}

const restartDelayMs = 1000;
const metricsTimeoutMs = 2000;
const pingMs = 5000;
/** With `pingMs` as long as the watchdog of the units of systemd, which watches the first process. */
const maxUnanswered = 12;

/**
 * Resolves when one process listens and each of the others listens or has failed once. @throws if the first of them ends
 * before it listens; its own message is on standard error
 */
export async function startApiProcesses(
  count: number,
  metrics: Metrics,
  log: Logger,
  { fork = forkServerProcess, pingEveryMs = pingMs } = {},
): Promise<ApiServer> {
  const running = new Set<ApiProcess>();
  const processors = processorsFor(count);
  const rates = createRateBuckets();
  let port: string | null = null;
  let [areAdmitted, isStopping] = [false, false];
  /** Counters of processes that have ended: Prometheus takes a sum that decreases for a restart, and counts all of it again. */
  let ended: MetricsJson = [];

  const metricsText = async () => {
    const [own] = await Promise.all([metrics.json(), ...[...running].map(updateMetrics)]);
    return metrics.sum([own, ended, ...[...running].map((one) => one.metrics)]);
  };

  const startOne = async (): Promise<string> => {
    const { promise: listening, resolve, reject } = Promise.withResolvers<string>();
    // The first process may take another port than the setting, and the others take the same.
    const worker = fork(port === null ? {} : { CLOUDYARD_PORT: port });
    const calls = openCalls(worker, { listening: resolve, metrics: metricsText, lease: rates.lease });
    const processor = processors.find((each) => ![...running].some((one) => one.processor === each));
    const one: ApiProcess = { worker, calls, processor, metrics: [] };
    running.add(one);
    let url: string | null = null;
    // Of a start without descriptors, and of a message to a process that has just died. Without a listener this process would end.
    worker.on('error', (error) => {
      if (worker.process.pid === undefined) running.delete(one);
      reject(error);
    });
    worker.once('exit', (code, signal) => {
      running.delete(one);
      ended = metrics.sumCounters([ended, one.metrics]);
      reject(new Error(`a process of the API ended with ${signal ?? code} before it listened`));
      if (url === null || isStopping) return;
      log.error({ apiPid: worker.process.pid, code, signal }, 'a process of the API ended; starting another one');
      void startOrRetry();
    });
    url = await listening;
    endWhenSilent(one, log, pingEveryMs);
    // Not before it listens: its start takes less time on several processors.
    if (processor !== undefined) {
      await bindToProcessor(worker.process.pid!, processor).catch((error: unknown) =>
        log.debug({ err: error, apiPid: worker.process.pid }, 'a process of the API is not bound to a processor'),
      );
    }
    if (areAdmitted) void calls.call('admitRequests').catch(() => {});
    return url;
  };

  /** Resolves after the first attempt. */
  const startOrRetry = async (): Promise<void> => {
    try {
      await startOne();
    } catch (error) {
      if (isStopping) return;
      log.error({ err: error }, 'a process of the API did not start; starting another one');
      void sleep(restartDelayMs).then(() => (isStopping ? undefined : startOrRetry()));
    }
  };

  const stop = async () => {
    isStopping = true;
    const [last, ...others] = running;
    // A connection on its way to a process that no longer listens goes to another one. So the last one listens longest, and
    // no client connects again before all have stopped.
    await callAll(others, 'stopListening');
    if (last) await callAll([last], 'stopListening');
    await Promise.all([...running].map((one) => end(one)));
  };

  try {
    const url = await startOne();
    port = String(portOf(url));
    await Promise.all(Array.from({ length: count - 1 }, startOrRetry));
    return {
      url,
      stop,
      admitRequests() {
        areAdmitted = true;
        void callAll([...running], 'admitRequests');
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A processor for each process if there are exactly as many. Otherwise the scheduler distributes them better: none. */
function processorsFor(count: number): number[] {
  const usable = usableProcessors();
  return count > 1 && usable.length === count ? usable : [];
}

/**
 * Ends the process if it does not respond: its connections, and a stop, would wait for it. Intervals of this process count, so
 * not the time for which the host was suspended.
 */
function endWhenSilent({ worker, calls }: ApiProcess, log: Logger, everyMs: number): void {
  let unanswered = 0;
  const answered = () => void (unanswered = 0);
  const timer = setInterval(() => {
    if (unanswered === 0) calls.call('ping').then(answered, answered);
    unanswered += 1;
    if (unanswered !== maxUnanswered) return;
    log.error({ apiPid: worker.process.pid }, 'a process of the API does not respond; ending it');
    worker.process.kill('SIGKILL');
  }, everyMs).unref();
  worker.once('exit', () => clearInterval(timer));
}

/** If the process does not respond, its counters are kept, and its gauges are removed: they describe the past. */
async function updateMetrics(one: ApiProcess): Promise<void> {
  const update = async () => void (one.metrics = await one.calls.call<MetricsJson>('metrics'));
  await within(metricsTimeoutMs, update).catch(() => void (one.metrics = withoutGauges(one.metrics)));
}

async function callAll(processes: ApiProcess[], name: string): Promise<void> {
  await Promise.allSettled(processes.map(({ calls }) => calls.call(name)));
}

async function end({ worker, calls }: ApiProcess): Promise<void> {
  // Not `once` of node:events, which rejects after an error event.
  const exited = worker.isDead() ? null : new Promise((ended) => worker.once('exit', ended));
  await calls.call('stop').catch(() => {});
  await exited;
}
