/**
 * File shares that only pretend: the same answers as a real driver, kept in memory, no host touched. After a restart
 * nothing is there, and `apply` makes it anew. Grows and never shrinks, as the real one.
 */
import { isDeepStrictEqual } from 'node:util';
import { refuseAborted } from '../command.ts';
import type { DesiredFileShare, FileShareDriver } from '../file-share.ts';

const DETAIL = 'file shares are simulated: they can be managed but not mounted';
const REMEDY = 'apt-get install nfs-ganesha nfs-ganesha-vfs xfsprogs';

/** `detail` and `remedy` say why it only pretends, where that is known (`findGanesha`). */
export function createSimulatedFileShareDriver({
  host,
  detail,
  remedy = `${REMEDY} (and run as root)`,
}: {
  host: string;
  detail?: string;
  remedy?: string;
}): FileShareDriver {
  const shares = new Map<string, DesiredFileShare>();
  return {
    name: 'simulated',
    real: false,
    status: () => ({
      driver: 'simulated',
      real: false,
      healthy: true,
      detail: detail ? `${DETAIL}; ${detail}` : DETAIL,
      remedy,
    }),
    start: async () => undefined,
    stop: async () => undefined,
    async apply(desired, signal) {
      refuseAborted(signal);
      const before = shares.get(desired.id);
      const sizeGib = Math.max(desired.sizeGib, before?.sizeGib ?? 0);
      const after = structuredClone({ ...desired, sizeGib, settledGib: null });
      shares.set(desired.id, after);
      const changed = !before ? ['created'] : isDeepStrictEqual(before, after) ? [] : ['changed'];
      return { connectionPoint: `${host.includes(':') ? `[${host}]` : host}:/shares/${desired.id}`, sizeGib, changed };
    },
    async remove(id) {
      shares.delete(id);
    },
    list: async () => [...shares.keys()].sort(),
    async quarantine(id) {
      shares.delete(id);
    },
  };
}
