/** The addresses of this host that move: removing them, and the connections to them. */
import { createSocket } from 'node:dgram';
import { writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { cidrOf, inBrackets } from '../../platform/network-address.ts';
import { run } from '../command.ts';
import { findProgram } from '../programs.ts';

interface Link {
  ifname: string;
  addr_info: { local: string; prefixlen: number }[];
}

/**
 * Removes the addresses for which `moves` returns true, on all interfaces. Only single addresses (/32, /128) move, so the
 * host keeps its own. @throws DriverError if one cannot be removed
 */
export async function removeAddresses(moves: (address: string) => boolean, scratchFile: string): Promise<string[]> {
  const found = await movingAddresses(moves);
  if (found.length === 0) return [];
  await writeFile(scratchFile, found.map(({ text, device }) => `addr del ${text} dev ${device}\n`).join(''));
  // -force: another program may remove one meanwhile.
  await run('ip', ['-force', '-batch', scratchFile]).catch(async (err: unknown) => {
    if ((await movingAddresses(moves)).length > 0) throw err;
  });
  return found.map(({ text }) => text);
}

async function movingAddresses(moves: (address: string) => boolean): Promise<{ text: string; device: string }[]> {
  const links = JSON.parse(await run('ip', ['-j', 'addr', 'show'])) as Link[];
  return links.flatMap(({ ifname, addr_info }) =>
    addr_info
      .filter(({ local, prefixlen }) => cidrOf(local) === `${local}/${prefixlen}` && moves(local))
      .map(({ local }) => ({ text: cidrOf(local), device: ifname })),
  );
}

/** Forgets who answered for an address before. */
export async function forgetNeighbour(address: string, device: string): Promise<void> {
  await run('ip', ['neigh', 'flush', 'to', address, 'dev', device]).catch(() => undefined);
}

/** Whether another machine of the network answers for this address. */
export async function isHeldElsewhere(address: string, device: string): Promise<boolean> {
  // A datagram makes the kernel resolve the neighbour.
  const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4');
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.send('', discardPort, address, () => resolve()));
  socket.close();
  const text = await run('ip', ['-j', 'neigh', 'show', 'to', address, 'dev', device]).catch(() => '[]');
  const neighbours = JSON.parse(text || '[]') as { lladdr?: string; state?: string[] }[];
  return neighbours.some(({ lladdr, state = [] }) => lladdr !== undefined && !state.includes('FAILED'));
}

const discardPort = 9;

/** Closes the connections to these addresses with a reset. Their clients notice at once, not with their next request. */
export async function resetConnections(addresses: readonly string[]): Promise<void> {
  const ss = findProgram('ss');
  if (!ss) return;
  for (let at = 0; at < addresses.length; at += ADDRESSES_PER_CALL) {
    const some = addresses.slice(at, at + ADDRESSES_PER_CALL);
    const filter = some.map((each) => `src ${inBrackets(each)}`).join(' or ');
    // The kernel may not support it (CONFIG_INET_DIAG_DESTROY): then clients notice later.
    await run(ss, ['-K', '-H', '-n', '-t', 'state', 'established', `( ${filter} )`]).catch(() => undefined);
  }
}

const ADDRESSES_PER_CALL = 200;

/** The number of open connections to these addresses. */
export async function openConnections(addresses: ReadonlySet<string>): Promise<number> {
  const ss = findProgram('ss');
  if (!ss) return 0;
  const lines = (await run(ss, ['-H', '-n', '-t', 'state', 'established'])).split('\n');
  return lines.filter((line) => addresses.has(localAddress(line))).length;
}

/** The third column: `10.0.0.1:80`, `[fd00::1]:80`. */
function localAddress(line: string): string {
  const local = line.trim().split(/\s+/)[2] ?? '';
  return local.slice(0, local.lastIndexOf(':')).replace(/^\[|\]$/g, '');
}
