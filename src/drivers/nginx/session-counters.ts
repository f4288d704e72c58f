/**
 * Counters of UDP listeners from the access log: the free nginx has no other source. A line is written when a session ends
 * (no datagram for the timeout), so open sessions are unknown and count as 0. A long log is truncated after it was read;
 * nginx appends, so at most the lines of that moment are lost.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { orNone } from '../../platform/or-none.ts';
import { zeroCounters, type ListenerCounters } from '../load-balancer.ts';

const MAX_LOG_BYTES = 4 * 1024 * 1024;

/** `file`: the access log, which need not exist yet. */
export function createSessionCounters(file: string) {
  const counters = new Map<string, ListenerCounters>();
  let from = 0;

  return {
    /** The counters of these listeners since the start of the log. @throws if the log cannot be read */
    async read(listeners: string[]): Promise<Map<string, ListenerCounters>> {
      const { text, end } = await readFrom(file, from);
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      for (const line of whole.split('\n')) count(counters, line);
      from = end - Buffer.byteLength(text) + Buffer.byteLength(whole);
      if (from > MAX_LOG_BYTES) {
        await truncate(file);
        from = 0;
      }
      return new Map(listeners.map((id) => [id, { ...(counters.get(id) ?? zeroCounters) }]));
    },
  };
}

/** The account of nginx owns the folder: a symbolic link there must not redirect to another file. */
const { O_RDONLY, O_WRONLY, O_NOFOLLOW } = constants;

async function truncate(file: string): Promise<void> {
  await using handle = await open(file, O_WRONLY | O_NOFOLLOW);
  await handle.truncate();
}

/** Reads from the start if the file has become shorter. */
async function readFrom(file: string, from: number): Promise<{ text: string; end: number }> {
  // After another error, the next call continues where the last one ended.
  await using handle = await open(file, O_RDONLY | O_NOFOLLOW).catch(orNone(null));
  if (!handle) return { text: '', end: 0 };
  const { size } = await handle.stat();
  const start = size < from ? 0 : from;
  const buffer = Buffer.alloc(size - start);
  const { bytesRead } = await handle.read(buffer, 0, buffer.length, start);
  return { text: buffer.subarray(0, bytesRead).toString('utf8'), end: start + bytesRead };
}

function count(counters: Map<string, ListenerCounters>, line: string): void {
  const [id, received, sent, status] = line.split(' ');
  if (!id || status === undefined) return;
  const total = counters.get(id) ?? { ...zeroCounters };
  total.totalConnections += 1;
  total.bytesIn += Number(received);
  total.bytesOut += Number(sent);
  if (Number(status) >= 500) total.serverErrors += 1;
  else if (status !== '200') total.requestErrors += 1;
  counters.set(id, total);
}
