/**
 * A real driver that did not start. It is started again with backoff; until then its operations fail as retryable, its
 * status says why, and the other drivers serve.
 *
 * Invariant: programs of an earlier process keep running, so a failed start ends no data plane.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../platform/log.ts';
import { detailOf, type DriverStatus } from '../platform/driver-status.ts';
import type { ShutdownMode } from '../platform/shutdown-mode.ts';
import { type Driver, DriverError } from './driver.ts';

type Startable = Pick<Driver<never, unknown>, 'status' | 'stop' | 'release'>;

interface RestartingOptions<D> {
  /** The kind of driver and its name, for logs, errors and the status. */
  title: string;
  name: string;
  /** Why the first start failed, and the driver that failed; null: the host cannot run one. */
  error: Error;
  failed: D | null;
  /** A command that makes a start succeed; undefined: none is known. `findRemedy` is called after each further failure. */
  remedy?: string | undefined;
  findRemedy?(): Promise<string | undefined>;
  /** Makes a driver. @throws if the host cannot run one */
  create(): D;
  /** Starts it, and returns it. */
  start(driver: D): Promise<D>;
  /** Serves properties and calls that need no host (an address, counters) until the driver runs. */
  idle: D;
  firstDelayMs?: number;
  log: Logger;
}

/** Of operations while another program has a port of the driver; there may be thousands. */
const operationSeconds = 20;
/** Doubles with each failure. */
const firstDelayMs = 1000;
const lastDelayMs = 60_000;
/** Members of drivers that do not fail while the driver is down. */
const idleMembers = new Set<string | symbol>(['counters', 'recheckMembers']);

/**
 * Returns a driver that starts the real one in the background. `stop` and `release` end the attempts and the driver.
 * Operations before its start reject with a retryable DriverError.
 */
export function restartingDriver<D extends Startable>(options: RestartingOptions<D>): D {
  const { title, name, log } = options;
  const ending = new AbortController();
  let { error, failed, remedy } = options;
  let running: D | null = null;

  const attempt = async () => {
    const driver = options.create();
    try {
      running = await options.start(driver);
    } catch (failure) {
      failed = driver;
      await endDriver(driver, 'keepDataPlanes');
      throw failure;
    }
  };
  const restart = async (): Promise<void> => {
    const first = options.firstDelayMs ?? firstDelayMs;
    for (let delay = first; !ending.signal.aborted; delay = Math.min(delay * 2, lastDelayMs)) {
      const retryMs = Math.min(delay, mostSecondsOf(error) * 1000);
      log.error({ kind: title, driver: name, err: error, retryMs }, 'the driver did not start');
      await sleep(retryMs, undefined, { signal: ending.signal }).catch(() => {});
      if (ending.signal.aborted) return;
      try {
        await attempt();
        log.info({ kind: title, driver: name }, 'the driver started');
        return;
      } catch (failure) {
        error = failure as Error;
        remedy = await options.findRemedy?.();
      }
    }
  };
  const restarted = restart();
  const end = async (mode: ShutdownMode) => {
    ending.abort();
    await restarted;
    const driver = running ?? failed;
    if (driver) await endDriver(driver, mode);
  };
  const status = (): DriverStatus =>
    running?.status() ?? {
      driver: name,
      real: true,
      healthy: false,
      detail: `does not start, retrying: ${detailOf(error)}`,
      ...(remedy !== undefined && { remedy }),
    };
  const own: Record<string | symbol, unknown> = {
    ...{ name, real: true, status },
    stop: () => end('stop'),
    release: () => end('keepDataPlanes'),
  };

  /** `part` is the driver, or its snapshots. */
  const watch = <Part extends object>(idle: Part, part: (driver: D) => Part): Part =>
    new Proxy(idle, {
      get(target, member) {
        if (member in own) return own[member];
        const value = Reflect.get(running ? part(running) : target, member) as unknown;
        if (member === 'snapshots') {
          return watch(value as object, (driver) => Reflect.get(driver, 'snapshots') as object);
        }
        if (typeof value !== 'function' || running) return value;
        return (...args: unknown[]) => {
          // The caller may have read the function before the driver ran.
          if (running) return (Reflect.get(part(running), member) as (...all: unknown[]) => unknown)(...args);
          if (idleMembers.has(member)) return value.apply(target, args) as unknown;
          return Promise.reject(notStarted(title, error));
        };
      },
    });
  return watch(options.idle, (driver) => driver);
}

/** A driver without `release` runs no program that serves users, so it is stopped in both modes. */
export async function endDriver(driver: Pick<Startable, 'stop' | 'release'>, mode: ShutdownMode): Promise<void> {
  await (mode === 'keepDataPlanes' && driver.release ? driver.release() : driver.stop());
}

const mostSecondsOf = (error: Error): number =>
  error instanceof DriverError ? error.maxRetrySeconds : Number.POSITIVE_INFINITY;

function notStarted(title: string, cause: Error): DriverError {
  // Only a cause that ends by itself has a sentence that helps customers.
  const endsItself = Number.isFinite(mostSecondsOf(cause));
  const reason = endsItself ? ` (${(cause as DriverError).customerMessage})` : '';
  return new DriverError(`the driver of ${title} did not start: ${cause.message}`, {
    customerMessage: `the host does not manage ${title} at the moment${reason}`,
    retryable: true,
    shortage: true,
    ...(endsItself && { maxRetrySeconds: operationSeconds }),
    cause,
  });
}
