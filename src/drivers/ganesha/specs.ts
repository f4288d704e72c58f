/**
 * What this host was last asked for, one file a share. The spec is the truth that exports are rendered from after a
 * restart: a share is exported exactly when it has one. It is written after the share's storage has the size that it
 * names, so storage that is larger than its spec was caught in the middle of growing.
 *
 * Specs are read back as untrusted input: one that cannot be understood is left alone and logged, never exported.
 */
import { readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { DriverError } from '../driver.ts';
import type { DesiredFileShare } from '../file-share.ts';
import { parseNetwork } from './networks.ts';
import { syncPath, writeDurably } from '../durable-files.ts';
import { idsIn, type Layout } from './layout.ts';

export interface Spec extends Omit<DesiredFileShare, 'settledGib'> {
  /** Ganesha's number of the export, part of the file handles that clients hold: it never changes. */
  exportId: number;
  /** Its loop device, part of the file handles as well; null where the storage is a plain folder. */
  device: number | null;
}

const LAST_EXPORT_ID = 65_535;

export async function loadSpecs(layout: Layout, log: Logger): Promise<Map<string, Spec>> {
  const specs = new Map<string, Spec>();
  for (const id of (await idsIn(layout.specs, '.json')).sort()) {
    try {
      specs.set(id, parseSpec(id, await readFile(layout.spec(id), 'utf8')));
    } catch (err) {
      log.error({ fileShare: id, err }, 'file share spec cannot be read');
    }
  }
  return specs;
}

export async function saveSpec(layout: Layout, spec: Spec): Promise<void> {
  await writeDurably(layout.spec(spec.id), `${JSON.stringify(spec, null, 2)}\n`);
}

/** Deletes it, or with `aside` keeps it in quarantine. */
export async function dropSpec(layout: Layout, id: string, { aside }: { aside: boolean }): Promise<void> {
  if (aside) await rename(layout.spec(id), join(layout.quarantine, `${id}.json`)).catch(ignoreMissing);
  else await rm(layout.spec(id), { force: true });
  await syncPath(layout.specs);
}

function ignoreMissing(err: NodeJS.ErrnoException): void {
  if (err.code !== 'ENOENT') throw err;
}

function parseSpec(id: string, text: string): Spec {
  const spec = JSON.parse(text) as Spec;
  const numbers = [spec.exportId, spec.sizeGib, spec.device ?? 1].every((n) => Number.isSafeInteger(n) && n > 0);
  if (spec.id !== id || !numbers || spec.exportId > LAST_EXPORT_ID || typeof spec.rootSquash !== 'boolean') {
    throw new Error('malformed spec');
  }
  for (const { network, mode } of spec.access) {
    parseNetwork(network);
    if (mode !== 'ro' && mode !== 'rw') throw new Error('malformed access rule');
  }
  return spec;
}

/** Numbers of exports, by the id of the share. */
export interface ExportIds {
  /** The number that the id has already, or a free one. */
  take(id: string): number;
  /** Only once Ganesha is known to have dropped the export. */
  release(id: string): void;
}

/**
 * Goes round before it reuses a number: a client that still holds a handle of a removed share must get ESTALE, not
 * another share.
 */
export function exportIds(specs: Iterable<Spec>): ExportIds {
  const numbers = new Map([...specs].map((spec) => [spec.id, spec.exportId]));
  const taken = new Set(numbers.values());
  let last = Math.max(0, ...taken);
  return {
    take(id) {
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
        customerMessage: 'This region has no room for more file shares.',
        retryable: false,
      });
    },
    release(id) {
      taken.delete(numbers.get(id) ?? 0);
      numbers.delete(id);
    },
  };
}
