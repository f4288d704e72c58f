/**
 * The specs of load balancers (spec-files.ts). Certificates and keys are in separate files (mode 0600) named by the digest of
 * their text, so that a file never changes while a process uses it.
 */
import { hash } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import type { Logger } from '../../platform/log.ts';
import type { DesiredCertificate, DesiredLoadBalancer } from '../load-balancer.ts';
import { ensureDurably } from '../durable-files.ts';
import { readSpecs } from '../spec-files.ts';
import type { Layout } from './layout.ts';

/** The desired state with file names instead of PEM texts. */
export type Spec = DesiredLoadBalancer;
/** Texts by file name. */
export type Files = Map<string, string>;

/** More than a listener gets (limits.ts). */
const NO_LIMIT = 1_000_000;

/** Replaces the PEM texts by names of files, which contain the hash of the text. */
export function extractFiles(desired: DesiredLoadBalancer): { spec: Spec; files: Files } {
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

/** Adds a text to the files and returns its name: the SHA-256 of the text. */
export function nameFile(files: Files, text: string, ending: 'pem' | 'list'): string {
  const name = `${hash('sha256', text)}.${ending}`;
  files.set(name, text);
  return name;
}

export async function writeFiles(layout: Layout, files: Files): Promise<void> {
  for (const [name, text] of files) await ensureDurably(layout.certificate(name), text);
}

/** Deletes the files that no load balancer uses, so that private keys are not kept longer than needed. */
export async function removeUnusedFiles(layout: Layout, used: Set<string>): Promise<void> {
  for (const name of await readdir(layout.certificates)) {
    if (!used.has(name)) await rm(layout.certificate(name), { force: true });
  }
}

/** Reads all specs, in the format of this version. */
export function loadSpecs(layout: Layout, log: Logger): Promise<Spec[]> {
  return readSpecs(layout, upgradeSpec, log);
}

/**
 * Version 0.2.0 wrote no layer-7 policies, listeners without a limit, and settings of persistence that only UDP pools have
 * now.
 */
function upgradeSpec(spec: Spec): Spec {
  const lists = [spec.listeners, spec.pools, ...(spec.pools ?? []).map(({ members }) => members)];
  if (!lists.every(Array.isArray)) throw new Error('malformed spec');
  const listeners = spec.listeners.map((each) => ({
    ...each,
    connectionLimit: each.connectionLimit ?? NO_LIMIT,
    l7Policies: each.l7Policies ?? [],
  }));
  const pools = spec.pools.map((pool) => {
    if (pool.protocol === 'UDP' || !pool.persistence) return pool;
    return { ...pool, persistence: { ...pool.persistence, timeoutSeconds: null, granularity: null } };
  });
  return { ...spec, listeners, pools };
}
