/**
 * The files of the driver. Specs are the source of truth and survive a crash of the host; the configuration is written
 * from them at every start. Sockets have a separate folder: the workers of HAProxy, which do not run as root, need some of
 * them, and a socket path has at most 107 characters.
 */
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  accountFor,
  makePrivateFolder,
  makeReadableFolder,
  makeRuntimeFolder,
  runsAsRoot,
  runtimeFolder,
} from '../confined.ts';
import { syncNewFolders } from '../durable-files.ts';
import { hasIds } from '../id-files.ts';
import { id as checkedId, path as checkedPath } from './quote.ts';

export type Layout = ReturnType<typeof layoutOf>;

/** @throws DriverError, permanent, for a data directory that the runtime socket cannot name */
export function layoutOf(dataDir: string) {
  const root = checkedPath(join(resolve(dataDir), 'load-balancers'));
  const folder = (name: string) => join(root, name);
  const sockets = runtimeFolder(root);
  return {
    root,
    specs: folder('specs'),
    certificates: folder('certificates'),
    quarantine: folder('quarantine'),
    /** HAProxy reads every `.cfg` file in it: `00-global.cfg`, and one for each load balancer. */
    configuration: folder('haproxy/configuration'),
    /** Files that HAProxy checks before they become configuration. */
    candidates: folder('haproxy/candidates'),
    haproxy: folder('haproxy'),
    /** Master and workers write here. Alerts about rejected reloads are read from it. */
    logFile: folder('haproxy/haproxy.log'),
    /** The log and pid of nginx. */
    nginx: folder('nginx'),
    nginxConfiguration: runsAsRoot() ? join(sockets, 'nginx') : folder('nginx'),
    /** The files that nginx writes. */
    nginxState: runsAsRoot() ? join(sockets, 'nginx/state') : folder('nginx/state'),
    sockets,
    globalFile: folder('haproxy/configuration/00-global.cfg'),
    masterSocket: join(sockets, 'master.sock'),
    exporterSocket: join(sockets, 'exporter.sock'),
    peerSocket: join(sockets, 'peers.sock'),
    stateFile: folder('haproxy/state'),
    spec: (id: string) => folder(`specs/${checkedId(id)}.json`),
    balancerFile: (id: string) => folder(`haproxy/configuration/balancer-${checkedId(id)}.cfg`),
    candidate: (id: string) => folder(`haproxy/candidates/${checkedId(id)}.cfg`),
    certificate: (name: string) => folder(`certificates/${name}`),
    adminSocket: (revision: string) => join(sockets, `admin-${revision}.sock`),
  };
}

/** @throws if another user owns the folder of the sockets */
export async function makeFolders(layout: Layout): Promise<void> {
  accountFor('haproxy');
  await mkdir(layout.root, { recursive: true, mode: 0o700 });
  const { specs, certificates, quarantine, configuration, candidates, nginx } = layout;
  for (const folder of [specs, quarantine, configuration, candidates, nginx]) await mkdir(folder, { recursive: true });
  await mkdir(certificates, { recursive: true, mode: 0o700 });
  await syncNewFolders(layout.root);
  makeRuntimeFolders(layout);
}

/** Those that another program may remove, because they are not in the data directory. */
export function makeRuntimeFolders({ sockets, nginxConfiguration, nginxState }: Layout): void {
  makeRuntimeFolder(sockets);
  makeReadableFolder(nginxConfiguration, accountFor('nginx'));
  makePrivateFolder(nginxState, accountFor('nginx'));
}

/** Whether a data directory contains load balancers. Starts nothing. */
export function hasLoadBalancers(dataDir: string): Promise<boolean> {
  return hasIds(layoutOf(dataDir).specs, '.json');
}
