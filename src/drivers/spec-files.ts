/**
 * Specs: the desired states that a driver keeps on its host, one file each, `<id>.json`.
 *
 * Failure modes: specs are untrusted input. One that cannot be read is logged and ignored.
 */
import { readFile } from 'node:fs/promises';
import type { Logger } from '../platform/log.ts';
import { writeDurably } from './durable-files.ts';
import { idsIn, removeDurably } from './id-files.ts';

/** Where the specs of a driver are. */
interface SpecFiles {
  specs: string;
  quarantine: string;
  spec(id: string): string;
}

/** The ids of the specs on disk, also of malformed ones. */
export const storedIds = ({ specs }: Pick<SpecFiles, 'specs'>) => idsIn(specs, '.json');

/** Reads all specs. `parse` throws for a malformed one. */
export async function readSpecs<Spec extends { id: string }>(
  files: SpecFiles,
  parse: (stored: Spec) => Spec,
  log: Logger,
): Promise<Spec[]> {
  const specs: Spec[] = [];
  for (const id of await storedIds(files)) {
    try {
      const stored = JSON.parse(await readFile(files.spec(id), 'utf8')) as Spec;
      if (stored.id !== id) throw new Error('malformed spec');
      specs.push(parse(stored));
    } catch (err) {
      log.error({ spec: files.spec(id), err }, 'a spec cannot be read');
    }
  }
  return specs;
}

/** Survives a crash of the host when it resolves. */
export async function saveSpec<Spec extends { id: string }>(files: SpecFiles, spec: Spec): Promise<void> {
  await writeDurably(files.spec(spec.id), `${JSON.stringify(spec, null, 2)}\n`);
}

/** Deletes a spec, or moves it to quarantine. */
export function removeSpec(files: SpecFiles, id: string, { quarantine }: { quarantine: boolean }): Promise<void> {
  return removeDurably(files.spec(id), quarantine ? files.quarantine : null);
}
