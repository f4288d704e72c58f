/**
 * Where everything of the driver lies. Specs are the truth and survive a crash of the host; configuration is written
 * anew from them at every start. Sockets lie apart: HAProxy's workers, which are not root, must reach some of them, and
 * the kernel takes no more than 107 characters.
 */
import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { id as checkedId, isId, path as checkedPath } from './quote.ts';

export interface Layout {
  root: string;
  specs: string;
  certificates: string;
  quarantine: string;
  /** HAProxy reads every `.cfg` file of it: `00-global.cfg`, and one a load balancer. */
  configuration: string;
  /** What HAProxy is asked to check before it gets it. */
  candidates: string;
  haproxy: string;
  nginx: string;
  sockets: string;
  globalFile: string;
  masterSocket: string;
  exporterSocket: string;
  peerSocket: string;
  stateFile: string;
  spec(id: string): string;
  balancerFile(id: string): string;
  candidate(id: string): string;
  certificate(name: string): string;
  adminSocket(revision: string): string;
}

export function layoutOf(dataDir: string): Layout {
  const root = checkedPath(join(resolve(dataDir), 'load-balancers'));
  const folder = (name: string) => join(root, name);
  const sockets = socketFolder(root);
  return {
    root,
    specs: folder('specs'),
    certificates: folder('certificates'),
    quarantine: folder('quarantine'),
    configuration: folder('haproxy/configuration'),
    candidates: folder('haproxy/candidates'),
    haproxy: folder('haproxy'),
    nginx: folder('nginx'),
    sockets,
    globalFile: folder('haproxy/configuration/00-global.cfg'),
    masterSocket: join(sockets, 'master.sock'),
    exporterSocket: join(sockets, 'exporter.sock'),
    peerSocket: join(sockets, 'peers.sock'),
    stateFile: folder('haproxy/state'),
    spec: (id) => folder(`specs/${checkedId(id)}.json`),
    balancerFile: (id) => folder(`haproxy/configuration/balancer-${checkedId(id)}.cfg`),
    candidate: (id) => folder(`haproxy/candidates/${checkedId(id)}.cfg`),
    certificate: (name) => folder(`certificates/${name}`),
    adminSocket: (revision) => join(sockets, `admin-${revision}.sock`),
  };
}

function socketFolder(root: string): string {
  const name = createHash('sha256').update(root).digest('hex').slice(0, 16);
  return process.getuid?.() === 0
    ? `/run/cloudyard/${name}`
    : join(tmpdir(), `cloudyard-${process.getuid?.()}-${name}`);
}

/** @throws when somebody else has made the folder of the sockets. */
export async function makeFolders(layout: Layout): Promise<void> {
  await mkdir(layout.root, { recursive: true, mode: 0o700 });
  const { specs, certificates, quarantine, configuration, candidates, nginx } = layout;
  for (const folder of [specs, quarantine, configuration, candidates, nginx]) await mkdir(folder, { recursive: true });
  await mkdir(certificates, { recursive: true, mode: 0o700 });
  await mkdir(layout.sockets, { recursive: true, mode: 0o711 });
  const found = await lstat(layout.sockets);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    throw new Error(`${layout.sockets} belongs to somebody else`);
  }
  await chmod(layout.sockets, 0o711);
}

/** The ids in a folder of `<id><ending>` files; anything else in it is left out. */
export async function idsIn(folder: string, ending: string, beginning = ''): Promise<string[]> {
  return (await readdir(folder))
    .filter((name) => name.startsWith(beginning) && name.endsWith(ending))
    .map((name) => name.slice(beginning.length, name.length - ending.length))
    .filter(isId);
}
