/**
 * The specs of shares (spec-files.ts). Exports are rendered from specs, so after a restart a share is exported exactly if it
 * has a spec.
 *
 * Invariant: a spec is written after the storage has the size that it records. Storage that is larger than its spec was
 * interrupted while growing.
 *
 * Failure modes: a share whose spec cannot be parsed is not exported until the next sweep applies it.
 */
import type { Logger } from '../../platform/log.ts';
import { DriverError } from '../driver.ts';
import type { DesiredFileShare } from '../file-share.ts';
import { accessNetwork } from './networks.ts';
import { sizeOf } from '../durable-files.ts';
import { readSpecs } from '../spec-files.ts';
import type { Layout } from './layout.ts';

export interface Spec extends Omit<DesiredFileShare, 'settledGib'> {
  /** Ganesha's number of the export. It never changes, because it is part of the clients' file handles. */
  exportId: number;
  /** Its loop device, also part of the file handles; null if the storage is a plain folder. */
  device: number | null;
}

const LAST_EXPORT_ID = 65_535;

export const isStored = async (layout: Layout, id: string) => (await sizeOf(layout.spec(id))) !== null;

/** The specs on disk, by id. */
export async function loadSpecs(layout: Layout, log: Logger): Promise<Map<string, Spec>> {
  return new Map((await readSpecs(layout, checked, log)).map((spec) => [spec.id, spec]));
}

function checked(spec: Spec): Spec {
  const numbers = [spec.exportId, spec.sizeGib, spec.device ?? 1].every((n) => Number.isSafeInteger(n) && n > 0);
  if (!numbers || spec.exportId > LAST_EXPORT_ID || typeof spec.rootSquash !== 'boolean') {
    throw new Error('malformed spec');
  }
  for (const { network, mode } of spec.access) {
    accessNetwork(network);
    if (mode !== 'ro' && mode !== 'rw') throw new Error('malformed access rule');
  }
  return spec;
}

/**
 * Assigns numbers to exports, by the id of the share. It reuses a number as late as possible: a client with a file handle of a
 * removed share must get ESTALE, not another share.
 */
export function exportIds(specs: Iterable<Spec>) {
  const numbers = new Map([...specs].map((spec) => [spec.id, spec.exportId]));
  const taken = new Set(numbers.values());
  let last = Math.max(0, ...taken);
  return {
    /** Returns the number of the share, or assigns a free one. */
    take(id: string): number {
      const own = numbers.get(id);
      if (own !== undefined) return own;
      for (let step = 0; step < LAST_EXPORT_ID; step += 1) {
        last = (last % LAST_EXPORT_ID) + 1;
        if (taken.has(last)) continue;
        taken.add(last);
        numbers.set(id, last);
        return last;
      }
      throw new DriverError(`all ${LAST_EXPORT_ID} export ids are taken`, {
        customerMessage: 'this region cannot hold more file shares',
        retryable: false,
      });
    },
    /** Call it only after Ganesha has confirmed the removal of the export. */
    release(id: string): void {
      taken.delete(numbers.get(id) ?? 0);
      numbers.delete(id);
    },
  };
}

export type ExportIds = ReturnType<typeof exportIds>;
