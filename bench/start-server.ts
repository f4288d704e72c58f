/** `npm start`: time until it is ready, on an empty data directory and after a stop, and memory when idle. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startCloudyard } from './cloudyard.ts';
import { quiet } from './quiet.ts';
import type { Row } from './table.ts';
import { residentMegabytes } from './usage.ts';
import type { Workplace } from './workplace.ts';

const restarts = 3;
/** A server collects garbage 20 s after its start, or as soon as it is idle after that. */
const idleMs = 40_000;

export async function startServer(workplace: Workplace): Promise<Row[]> {
  await quiet();
  const first = await startCloudyard(workplace, { command: 'start', throughNpm: true });
  await sleep(idleMs);
  const idle = residentMegabytes(first.pid);
  await first.stop();
  const again: number[] = [];
  for (let i = 0; i < restarts; i++) {
    await quiet();
    const server = await startCloudyard(workplace, { command: 'start', throughNpm: true });
    again.push(server.readyAfterMs / 1000);
    await server.stop();
  }
  return [
    { what: 'first start to ready', values: [first.readyAfterMs / 1000], unit: 's', bar: { atMost: 8 } },
    { what: 'restart to ready', values: again, unit: 's', bar: { atMost: 1.2 } },
    {
      what: `memory of the Node process, idle for ${idleMs / 1000} s`,
      values: [idle],
      unit: 'MB',
      bar: { atMost: 130 },
    },
  ];
}
