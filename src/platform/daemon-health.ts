/**
 * The health of a running daemon: whether it responds, and whether its socket exists. A frozen daemon is reported and not
 * ended, because it continues when it is thawed, and an overloaded one may serve its clients.
 */
import { existsSync } from 'node:fs';
import type { Logger } from './log.ts';
import { joined } from './turns.ts';
import { within } from './within.ts';

interface Watched {
  name: string;
  probe(): Promise<void>;
  socket?: string;
  log: Logger;
}

export type DaemonHealth = ReturnType<typeof watchHealth>;

const probeEveryMs = 10_000;
const responseMs = 5000;
/** Failed probes in a row after which a daemon counts as silent. */
const maxFailures = 2;
const socketPollMs = 1000;

/** Watches until `over` aborts. `socketRemoved` resolves when the socket was removed. */
export function watchHealth({ name, probe, socket, log }: Watched, over: AbortSignal, everyMs = probeEveryMs) {
  const { promise: socketRemoved, resolve } = Promise.withResolvers<'socket removed'>();
  let failures = 0;
  const check = joined(async () => {
    const error = await within(responseMs, probe).then(
      () => null,
      (err: unknown) => err,
    );
    if (over.aborted) return;
    failures = error === null ? 0 : failures + 1;
    if (failures === maxFailures) log.warn({ daemon: name, err: error }, 'daemon does not respond');
  });
  const timers = [setInterval(() => void check(), everyMs).unref()];
  if (socket !== undefined) {
    timers.push(setInterval(() => !existsSync(socket) && resolve('socket removed'), socketPollMs).unref());
  }
  over.addEventListener('abort', () => timers.forEach(clearInterval), { once: true });
  return { isSilent: () => failures >= maxFailures, socketRemoved };
}
