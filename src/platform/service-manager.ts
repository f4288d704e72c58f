/**
 * Notifies systemd (`Type=notify`) of readiness, liveness and the stop of this process. Node has no datagram sockets in the
 * Unix domain, so the program `systemd-notify` sends the messages: one at the start, one at the stop, and two in each
 * watchdog interval. The unit needs `NotifyAccess=all`, because the sender is a child.
 *
 * Failure modes: a message that cannot be sent is logged. systemd then acts on its own timeouts.
 */
import { runChild } from './child-process.ts';
import type { Logger } from './log.ts';

/** Null if systemd does not wait for messages of this process. */
export function findServiceManager(env: Record<string, string | undefined>, log: Logger) {
  const socket = env['NOTIFY_SOCKET'];
  if (!socket) return null;
  let watchdog: NodeJS.Timeout | undefined;
  const send = (...messages: string[]) =>
    runChild('systemd-notify', messages, { env: { NOTIFY_SOCKET: socket } }).catch((error: Error) =>
      log.warn({ err: error }, 'cannot notify systemd'),
    );
  return {
    /** Also starts the watchdog's messages: an event loop that is blocked for a whole interval ends the process. */
    async ready(): Promise<void> {
      await send('READY=1');
      const interval = watchdogInterval(env);
      if (interval === null) return;
      watchdog = setInterval(() => void send('WATCHDOG=1'), interval / 2).unref();
    },
    async stopping(): Promise<void> {
      clearInterval(watchdog);
      await send('STOPPING=1');
    },
  };
}

/** The service of systemd in the text of `/proc/PID/cgroup`, for example `nginx.service`; null: none. */
export const serviceIn = (cgroup: string): string | null => /\/([^/\n]+\.service)$/m.exec(cgroup)?.[1] ?? null;

/** Milliseconds. Null without a watchdog, and in a child of the process that it watches. */
function watchdogInterval({ WATCHDOG_USEC: microseconds, WATCHDOG_PID: pid }: Record<string, string | undefined>) {
  const interval = Number(microseconds) / 1000;
  if (!(interval > 0) || (pid !== undefined && Number(pid) !== process.pid)) return null;
  return interval;
}
