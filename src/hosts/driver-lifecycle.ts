/**
 * How a part starts and ends a driver of one host. The driver serves on all addresses of the region, and another part moves the
 * addresses, so `serve` and `drain` have nothing to do.
 */
import type { Driver } from '../drivers/driver.ts';
import { endDriver } from '../drivers/restarting.ts';
import type { ShutdownMode } from '../platform/shutdown-mode.ts';
import type { HostPart } from './part.ts';

type Lifecycle = Pick<HostPart, 'start' | 'serve' | 'hostsChanged' | 'stopServing' | 'drain' | 'status'> & {
  release(): Promise<void>;
};

interface LifecycleOptions<D> {
  title: string;
  /** Makes and starts the driver. */
  open(): Promise<D>;
  /** Called periodically while the driver runs. Never rejects. */
  refresh?(driver: D): Promise<void>;
}

const refreshMs = 30_000;

/** `running`: the driver. @throws before `start` and after the end */
export function driverLifecycle<D extends Pick<Driver<never, unknown>, 'status' | 'stop' | 'release'>>({
  title,
  open,
  refresh,
}: LifecycleOptions<D>): { running(): D; lifecycle: Lifecycle } {
  let opened: D | null = null;
  let timer: NodeJS.Timeout | undefined;
  const end = async (mode: ShutdownMode) => {
    clearInterval(timer);
    if (opened) await endDriver(opened, mode);
    // Not before: the agent calls again after a failure.
    opened = null;
  };
  return {
    running() {
      if (!opened) throw new Error(`the driver of ${title} does not run`);
      return opened;
    },
    lifecycle: {
      async start() {
        if (opened) return;
        opened = await open();
        timer = setInterval(() => opened && void refresh?.(opened), refreshMs).unref();
      },
      serve: async () => undefined,
      hostsChanged: async () => undefined,
      stopServing: () => end('stop'),
      release: () => end('keepDataPlanes'),
      drain: async () => undefined,
      status: () =>
        opened?.status() ?? { driver: 'none', real: false, healthy: false, detail: 'the driver does not run' },
    },
  };
}
