/**
 * What UDP listeners have carried, from nginx's access log: without its commercial status module nginx tells nothing
 * else, and a line only when a session ends (no datagram for the timeout). What is open now is not known and counts as 0.
 * The log is cut after it was read past a size; nginx appends, so that loses at most the lines of that instant.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { ListenerCounters } from '../load-balancer.ts';

export interface UdpCounting {
  read(listeners: string[]): Promise<Map<string, ListenerCounters>>;
}

const CUT_AT = 4 * 1024 * 1024;

export function udpCounting(file: string): UdpCounting {
  const counters = new Map<string, ListenerCounters>();
  let from = 0;

  return {
    async read(listeners) {
      const { text, end } = await readFrom(file, from);
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      for (const line of whole.split('\n')) count(counters, line);
      from = end - Buffer.byteLength(text) + Buffer.byteLength(whole);
      if (from > CUT_AT) {
        await cut(file);
        from = 0;
      }
      return new Map(listeners.map((id) => [id, { ...(counters.get(id) ?? nothing()) }]));
    },
  };
}

/** nginx's account owns the folder: a link that it puts there must not lead us to another file. */
const { O_RDONLY, O_WRONLY, O_NOFOLLOW } = constants;

async function cut(file: string): Promise<void> {
  const handle = await open(file, O_WRONLY | O_NOFOLLOW);
  await handle.truncate().finally(() => handle.close());
}

/** From the beginning when the file has become shorter. */
async function readFrom(file: string, from: number): Promise<{ text: string; end: number }> {
  const handle = await open(file, O_RDONLY | O_NOFOLLOW).catch(() => null);
  if (!handle) return { text: '', end: 0 };
  try {
    const { size } = await handle.stat();
    const start = size < from ? 0 : from;
    const buffer = Buffer.alloc(size - start);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, start);
    return { text: buffer.subarray(0, bytesRead).toString('utf8'), end: start + bytesRead };
  } finally {
    await handle.close();
  }
}

function count(counters: Map<string, ListenerCounters>, line: string): void {
  const [id, received, sent, status] = line.split(' ');
  if (!id || status === undefined) return;
  const has = counters.get(id) ?? nothing();
  has.totalConnections += 1;
  has.bytesIn += Number(received);
  has.bytesOut += Number(sent);
  if (status !== '200') has.requestErrors += 1;
  counters.set(id, has);
}

function nothing(): ListenerCounters {
  return { activeConnections: 0, totalConnections: 0, bytesIn: 0, bytesOut: 0, requestErrors: 0 };
}
