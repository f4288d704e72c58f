/** Starts the gate (gate/main.ts), which clients connect to. */
import { readFile } from 'node:fs/promises';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import type { Logger } from '../../platform/log.ts';
import type { Daemon } from '../../platform/daemon.ts';
import { request as httpRequest } from '../../platform/node-http.ts';
import { programFile } from '../../platform/program-files.ts';
import { accountFor, confined, runtimeFolder } from '../confined.ts';
import { isOwnAddress } from '../own-host.ts';
import type { RegistryHosting } from '../registry.ts';
import { certificateFile, certificateSocket } from './gate-certificate.ts';
import { startConfigured } from './configured.ts';
import type { GateConfiguration } from './gate/main.ts';
import { reportSeconds } from './gate/watch.ts';
import { type Layout, makeFolders, namesIn } from './layout.ts';
import { expectRealm } from './process.ts';
import { writtenAt } from './storage.ts';

export interface GateOptions extends Pick<GateConfiguration, 'port' | 'patience' | 'diskReserve' | 'replica'> {
  layout: Layout;
  host: string;
  /** Whether `host` moves between hosts. This host may have it now, and must respond at others when it does not. */
  moves?: boolean;
  /** Whether it serves TLS, with the certificate that `storeCertificate` stores before each start. */
  hasTls: boolean;
  storeCertificate(): Promise<void>;
  log: Logger;
}

/** Needed to read the program and its files, to bind a low port, and to change to its account. */
const CAPABILITIES = ['dac_read_search', 'net_bind_service', 'setgid', 'setuid'];
/**
 * Parts of bodies are short-lived buffers outside of a small heap. Because of those that forward.ts does not free, V8 would start
 * to mark the whole heap often, which takes longer than forwarding the bytes. The young generation is still collected.
 * With SIGUSR1, Node would open its debugger, to which every account of the host can connect.
 */
const nodeOptions = ['--no-incremental-marking', '--single-threaded-gc', '--disable-sigusr1'];
const main = programFile('drivers/distribution/gate/main.ts');
/** Increment it with a change that must replace running gates instead of adopting them. */
const version = 8;

/** Starts or adopts the gate. @throws DriverError */
export async function startGate(options: GateOptions, hosting: RegistryHosting): Promise<Daemon> {
  const { layout, port, moves, hasTls, storeCertificate, patience, diskReserve, replica, log } = options;
  const { certificate, issuer, service, realm } = hosting;
  // All addresses, if this machine does not have that of `host` (behind NAT, or now).
  const host = !moves && isOwnAddress(options.host) ? options.host : undefined;
  const account = accountFor('registry');
  const tls = hasTls ? { file: certificateFile(layout), socket: certificateSocket(layout) } : null;
  const configuration: GateConfiguration = {
    root: layout.root,
    runtime: runtimeFolder(layout.root),
    account: account && { uid: account.uid, gid: account.gid },
    ...{ host, port, tls, certificate, issuer, service, patience, diskReserve, replica },
  };
  return startConfigured({
    ...{ name: 'gate', folder: layout.distribution, log, startTimeout: 30 },
    ...(account && { account: account.uid }),
    settings: [version, configuration],
    async beforeStart() {
      // Folders that were removed; not on a shared mount (process.ts).
      if (replica === null) await makeFolders(layout);
      await storeCertificate();
    },
    files: (name) => ({ [`${name}.json`]: JSON.stringify(configuration) }),
    command: (name) => {
      const args = [...nodeOptions, main, join(layout.distribution, `${name}.json`)];
      return confined({ file: process.execPath, args }, null, CAPABILITIES);
    },
    probe: () => {
      const target = { hostname: host ?? '127.0.0.1', port, path: '/v2/', timeout: 2000, agent: false as const };
      return expectRealm(
        (onResponse) =>
          tls ? httpsRequest({ ...target, rejectUnauthorized: false }, onResponse) : httpRequest(target, onResponse),
        realm,
      );
    },
  });
}

/** A gate writes its report at least every `reportSeconds`, so an older one is of a host that is away. */
const forgottenMs = 3 * reportSeconds * 1000;

/** Bytes of unfinished uploads by prefix, as the gates last reported them. Each of them knows only some uploads. */
export async function readReport({ gate, uploads }: Layout): Promise<Map<string, number>> {
  const most = new Map<string, number>();
  for (const file of (await namesIn(gate)).filter((name) => name.endsWith('.json')).map((name) => join(gate, name))) {
    const at = await writtenAt(file);
    if (!at || (file !== uploads && at.getTime() < Date.now() - forgottenMs)) continue;
    const report = JSON.parse(await readFile(file, 'utf8')) as Record<string, number>;
    for (const [prefix, bytes] of Object.entries(report)) most.set(prefix, Math.max(bytes, most.get(prefix) ?? 0));
  }
  return most;
}
