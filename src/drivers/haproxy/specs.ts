/**
 * What this host was last asked for, one file a load balancer. Certificates and keys are not in it but in files of their
 * own (mode 0600), named by the digest of their text: a spec names a file, the same text is one file, and a file never
 * changes under a process that runs with it.
 *
 * Specs are read back as untrusted input: one that cannot be understood is left alone and logged, and never rendered.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { DesiredCertificate, DesiredLoadBalancer } from '../load-balancer.ts';
import { syncPath, writeDurably } from '../durable-files.ts';
import { idsIn, type Layout } from './layout.ts';

/** As desired, with the names of files where PEM texts were. */
export type Spec = DesiredLoadBalancer;
/** Texts by the names of their files. */
export type Files = Map<string, string>;

export function takeApart(desired: DesiredLoadBalancer): { spec: Spec; files: Files } {
  const files: Files = new Map();
  const put = (text: string | null) => (text === null ? null : nameFile(files, text, 'pem'));
  const putCertificate = ({ id, pem }: DesiredCertificate) => ({ id, pem: nameFile(files, pem, 'pem') });
  const spec: Spec = structuredClone({
    ...desired,
    listeners: desired.listeners.map((listener) => ({
      ...listener,
      certificate: listener.certificate && putCertificate(listener.certificate),
      sniCertificates: listener.sniCertificates.map(putCertificate),
    })),
    pools: desired.pools.map((pool) => ({
      ...pool,
      caBundle: put(pool.caBundle),
      revocationList: put(pool.revocationList),
      clientCertificate: pool.clientCertificate && putCertificate(pool.clientCertificate),
    })),
  });
  return { spec, files };
}

export function nameFile(files: Files, text: string, ending: 'pem' | 'list'): string {
  const name = `${createHash('sha256').update(text).digest('hex')}.${ending}`;
  files.set(name, text);
  return name;
}

export async function writeFiles(layout: Layout, files: Files): Promise<void> {
  for (const [name, text] of files) {
    if (!existsSync(layout.certificate(name))) await writeDurably(layout.certificate(name), text);
  }
}

/** Deletes what no load balancer uses any more: private keys do not stay longer than they must. */
export async function dropUnused(layout: Layout, used: Set<string>): Promise<void> {
  for (const name of await readdir(layout.certificates)) {
    if (!used.has(name)) await rm(layout.certificate(name), { force: true });
  }
}

export async function loadSpecs(layout: Layout, log: Logger): Promise<Spec[]> {
  const specs: Spec[] = [];
  for (const id of (await idsIn(layout.specs, '.json')).sort()) {
    try {
      const spec = JSON.parse(await readFile(layout.spec(id), 'utf8')) as Spec;
      const lists = [spec.listeners, spec.pools, ...(spec.pools ?? []).map(({ members }) => members)];
      if (spec.id !== id || !lists.every(Array.isArray)) throw new Error('malformed spec');
      specs.push(spec.tenant === undefined ? { ...spec, tenant: spec.id } : spec);
    } catch (err) {
      log.error({ loadBalancer: id, err }, 'load balancer spec cannot be read');
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
