/** Limits the connections of each address, so that one address cannot exhaust them. */
import type { Server, Socket } from 'node:net';
import { descriptorLimit } from '../../../platform/descriptors.ts';
import { sourceOf } from '../../../platform/network-address.ts';

const maxConnections = 8000;
/** A client, or the proxy of a site, needs a few hundred connections. */
const shareOfAddress = 1 / 4;
/** The connection of the client, one to distribution, and a file. */
const descriptorsEach = 3;

/** Closes connections above the limits, which follow from the limit of open files. */
export function limitConnections(server: Server): void {
  const total = Math.min(maxConnections, Math.floor(descriptorLimit() / descriptorsEach));
  const perAddress = Math.floor(total * shareOfAddress);
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
}
