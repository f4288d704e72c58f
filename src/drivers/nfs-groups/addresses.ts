/**
 * The address of a group on this host. While a server starts, its address is on the loopback interface, where only this host
 * reaches it; when it serves, on the host's interface, and the neighbours are notified.
 *
 * Invariant: `arp_ignore` is 1, otherwise the kernel answers ARP requests for addresses of the loopback interface, and clients
 * would connect before the server responds. Neighbour solicitations of IPv6 it answers only for the interface that gets them.
 */
import { writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { Logger } from '../../platform/log.ts';
import { cidrOf } from '../../platform/network-address.ts';
import { PYTHON } from '../ceph/bridge.ts';
import { run } from '../command.ts';

const LOOPBACK = 'lo';
/** One a second: neighbours may miss one. */
const ANNOUNCEMENTS = 3;

/**
 * Sends unsolicited neighbour advertisements (RFC 4861, 4.4) with the override flag to all nodes of the link; the kernel fills in
 * the checksum. The kernel itself announces an address only after duplicate address detection, which would refuse one that a
 * frozen host still has. Debian's arping sends ARP only.
 */
const ADVERTISE = `
import socket, struct, sys, time
device, address, count = sys.argv[1:]
mac = bytes.fromhex(open(f"/sys/class/net/{device}/address").read().strip().replace(":", ""))
packet = struct.pack("!BBHI", 136, 0, 0, 1 << 29) + socket.inet_pton(socket.AF_INET6, address) + bytes([2, 1]) + mac
with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as out:
    out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
    out.bind((address, 0))
    for _ in range(int(count)):
        out.sendto(packet, ("ff02::1", 0, 0, socket.if_nametoindex(device)))
        time.sleep(1)
`;

/** `networkInterface`: where clients reach the address. All calls but `prepare` reject with a DriverError. */
export function groupAddresses(networkInterface: string, log: Logger) {
  const family = (address: string) => (isIP(address) === 6 ? ['-6'] : ['-4']);
  const has = async (address: string, device: string) =>
    (await run('ip', [...family(address), '-o', 'addr', 'show', 'dev', device, 'to', cidrOf(address)])) !== '';
  const addTo = async (address: string, device: string) => {
    if (await has(address, device)) return;
    // Deprecated (preferred_lft 0), so that the host does not use it for its own connections.
    const options = isIP(address) === 6 ? ['nodad', 'preferred_lft', '0'] : [];
    await run('ip', [...family(address), 'addr', 'add', cidrOf(address), 'dev', device, ...options]);
  };
  const removal = (address: string, device: string) => [
    ...family(address),
    ...['addr', 'del', cidrOf(address), 'dev', device],
  ];
  const removeFrom = async (address: string, device: string) => {
    if (await has(address, device)) await run('ip', removal(address, device));
  };
  const announce = (address: string) =>
    isIP(address) === 6
      ? run(PYTHON, ['-c', ADVERTISE, networkInterface, address, `${ANNOUNCEMENTS}`])
      : run('arping', ['-q', '-U', '-c', `${ANNOUNCEMENTS}`, '-I', networkInterface, address]);
  return {
    /** Settings of the kernel for addresses that move. */
    async prepare(): Promise<void> {
      const name = `ipv4/conf/${networkInterface}/arp_ignore`;
      await writeFile(`/proc/sys/net/${name}`, '1').catch((err: unknown) =>
        log.warn({ setting: name, err }, 'a setting of the kernel cannot be changed'),
      );
    },
    /** Reachable from this host only. */
    addLocally: (address: string) => addTo(address, LOOPBACK),
    /** Reachable by clients; notifies the neighbours. */
    async add(address: string): Promise<void> {
      await addTo(address, networkInterface);
      await removeFrom(address, LOOPBACK);
      // In the background: the announcements take seconds, and the address works meanwhile.
      void announce(address).catch((err: unknown) =>
        log.warn({ address, err }, 'cannot notify the neighbours of an address'),
      );
    },
    /** From every interface. Resolves also if this host does not have it. */
    async remove(address: string): Promise<void> {
      await removeFrom(address, networkInterface);
      await removeFrom(address, LOOPBACK);
    },
    /** Arguments of `ip` that make it unreachable for clients, for a process that must not depend on this one. */
    removal: (address: string) => removal(address, networkInterface),
  };
}

export type GroupAddresses = ReturnType<typeof groupAddresses>;
