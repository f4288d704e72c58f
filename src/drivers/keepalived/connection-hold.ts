/**
 * Delays new connections to addresses that are about to move: the kernel (nftables) drops the first packet, and the client
 * sends it again after a second, when another host has the address. Open connections are not affected.
 *
 * Failure modes: without nft, or if the kernel refuses, new connections are accepted until the address moves, which closes
 * them. A table that a dead process left behind is removed by the next start.
 */
import { hash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import type { Logger } from '../../platform/log.ts';
import { run } from '../command.ts';
import { findProgram } from '../programs.ts';

/** `folder`: where it writes its rules; it also names the table. */
export function createConnectionHold(folder: string, log: Logger) {
  const nft = findProgram('nft');
  const table = `cloudyard_hold_${hash('sha256', resolve(folder)).slice(0, 16)}`;
  const file = join(folder, 'hold.nft');
  return {
    /** Replaces the addresses that are held. Never rejects. */
    async hold(addresses: readonly string[]): Promise<void> {
      try {
        if (!nft) throw new Error('nft is not installed');
        await writeFile(file, renderHold(table, addresses), { mode: 0o600 });
        await run(nft, ['-f', file]);
      } catch (err) {
        log.warn({ err }, 'cannot delay new connections; some will be closed when addresses move');
      }
    },
    /** Ends the delay, also one that an earlier process began. Never rejects. */
    async release(): Promise<void> {
      if (!nft) return;
      await run(nft, [`add table inet ${table}; delete table inet ${table}`]).catch((err: unknown) =>
        log.error({ err, table }, 'cannot end the delay of new connections'),
      );
    },
  };
}

export type ConnectionHold = ReturnType<typeof createConnectionHold>;

/** Pure. */
export function renderHold(table: string, addresses: readonly string[]): string {
  const rules = ([4, 6] as const).map((version) => {
    const some = addresses.filter((address) => isIP(address) === version);
    const field = version === 4 ? 'ip daddr' : 'ip6 daddr';
    return some.length > 0 ? `    ${field} { ${some.join(', ')} } tcp flags & (syn | ack) == syn drop\n` : '';
  });
  return `add table inet ${table}
delete table inet ${table}
table inet ${table} {
  chain input {
    type filter hook input priority raw; policy accept;
${rules.join('')}  }
}
`;
}
