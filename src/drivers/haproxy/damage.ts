/**
 * Files of load balancers that something else has removed or damaged. HAProxy has read them, and needs them at its next
 * reload, which is one for all load balancers. Configuration files are not among them: every reload writes them.
 */
import { hash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { storedIds } from '../spec-files.ts';
import { filesOf, type Host } from './host.ts';
import { type Layout, makeFolders } from './layout.ts';
import type { Spec } from './specs.ts';

/** Load balancers without their spec or one of their files, and excluded ones with a file that is not what its name says. */
export async function findDamaged(host: Host): Promise<string[]> {
  const { layout } = host;
  // Without a folder, all of its files are missing, and an apply needs it.
  await makeFolders(layout);
  const stored = new Set(await storedIds(layout));
  const files = new Set(await readdir(layout.certificates));
  const isDamaged = async (spec: Spec) => {
    const names = filesOf(host, spec);
    if (!stored.has(spec.id) || !names.every((name) => files.has(name))) return true;
    return host.broken.has(spec.id) && !(await areIntact(layout, names));
  };
  const damaged: string[] = [];
  for (const spec of host.specs.values()) if (await isDamaged(spec)) damaged.push(spec.id);
  return damaged;
}

/** The name of a file is the hash of its text (specs.ts). */
async function areIntact(layout: Layout, names: string[]): Promise<boolean> {
  for (const name of names) {
    const text = await readFile(layout.certificate(name)).catch(() => '');
    if (hash('sha256', text) !== name.split('.')[0]) return false;
  }
  return true;
}
