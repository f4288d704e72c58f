/**
 * The address of a group on this host. While a server starts, its address is on the loopback interface, where only this host
 * reaches it; when it serves, on the host's interface, and the neighbours are notified.
 *
 * Invariant: `arp_ignore` is 1, otherwise the kernel answers ARP requests for addresses of the loopback interface, and clients
 * would connect before the server responds.
 */
import { writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { Logger } from 'pino';
import { run } from '../command.ts';

export interface GroupAddresses {
  /** Settings of the kernel for addresses that move. */
  prepare(): Promise<void>;
  /** Reachable from this host only. */
  addLocally(address: string): Promise<void>;
  /** Reachable by clients; notifies the neighbours. */
  add(address: string): Promise<void>;
  /** From every interface. Resolves also if this host does not have it. */
  remove(address: string): Promise<void>;
}

const LOOPBACK = 'lo';
/** Neighbours may miss one. */
const ANNOUNCEMENTS = 3;

export function groupAddresses(networkInterface: string, log: Logger): GroupAddresses {
  const family = (address: string) => (isIP(address) === 6 ? ['-6'] : ['-4']);
  const host = (address: string) => `${address}/${isIP(address) === 6 ? 128 : 32}`;
  const has = async (address: string, device: string) =>
    (await run('ip', [...family(address), '-o', 'addr', 'show', 'dev', device, 'to', host(address)])) !== '';
  const addTo = async (address: string, device: string) => {
    if (await has(address, device)) return;
    const nodad = isIP(address) === 6 ? ['nodad'] : [];
    await run('ip', [...family(address), 'addr', 'add', host(address), 'dev', device, ...nodad]);
  };
  const removeFrom = async (address: string, device: string) => {
    if (await has(address, device)) await run('ip', [...family(address), 'addr', 'del', host(address), 'dev', device]);
  };
  return {
    async prepare() {
      // ndisc_notify: the kernel announces new IPv6 addresses.
      const wanted = [`ipv4/conf/${networkInterface}/arp_ignore`, `ipv6/conf/${networkInterface}/ndisc_notify`];
      for (const name of wanted) {
        await writeFile(`/proc/sys/net/${name}`, '1').catch((err: unknown) =>
          log.warn({ setting: name, err }, 'a setting of the kernel cannot be changed'),
        );
      }
    },
    addLocally: (address) => addTo(address, LOOPBACK),
    async add(address) {
      await addTo(address, networkInterface);
      await removeFrom(address, LOOPBACK);
      if (isIP(address) === 6) return;
      // In the background: the announcements take seconds, and the address works meanwhile.
      void run('arping', ['-q', '-U', '-c', `${ANNOUNCEMENTS}`, '-I', networkInterface, address]).catch(
        (err: unknown) => log.warn({ address, err }, 'the neighbours were not notified of an address'),
      );
    },
    async remove(address) {
      await removeFrom(address, networkInterface);
      await removeFrom(address, LOOPBACK);
    },
  };
}
