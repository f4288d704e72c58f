/** Bounds how many connections one address may hold, so that others still find room. */
import type { Server, Socket } from 'node:net';
import { readFileSync } from 'node:fs';

const most = 8000;
/** A client or a proxy of a site needs hundreds at the most. */
const share = 1 / 4;
/** A connection of a client, one to distribution for it, and files. */
const descriptorsEach = 3;

export function limitConnections(server: Server): { total: number; perAddress: number } {
  const total = Math.min(most, Math.floor(descriptors() / descriptorsEach));
  const perAddress = Math.floor(total * share);
  const open = new Map<string, number>();
  server.maxConnections = total;
  server.on('connection', (socket: Socket) => {
    const from = sourceOf(socket.remoteAddress ?? '');
    const count = (open.get(from) ?? 0) + 1;
    if (count > perAddress) return socket.destroy();
    open.set(from, count);
    socket.once('close', () => {
      const left = open.get(from)! - 1;
      if (left > 0) open.set(from, left);
      else open.delete(from);
    });
  });
  return { total, perAddress };
}

/** An IPv4 address, or the first 64 bits of an IPv6 address: a host is given so many. */
function sourceOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped || !address.includes(':')) return mapped ?? address;
  const [head = '', tail] = address.split('%')[0]!.split('::');
  const groups = head.split(':').filter(Boolean);
  const rest = tail?.split(':').filter(Boolean) ?? [];
  const zeros = Array.from({ length: Math.max(0, 8 - groups.length - rest.length) }, () => '0');
  return [...groups, ...(tail === undefined ? [] : zeros), ...rest].slice(0, 4).join(':');
}

/** Node raises the soft limit to the hard one when it starts. */
function descriptors(): number {
  const limits = readFileSync('/proc/self/limits', 'utf8');
  const soft = Number(/^Max open files +(\d+)/m.exec(limits)?.[1]);
  return Number.isSafeInteger(soft) ? soft : 1_000_000;
}
