/** Starts the gate (gate/main.ts), which clients connect to. */
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { extname, join } from 'node:path';
import type { Logger } from 'pino';
import type { Daemon } from '../../platform/daemon.ts';
import { accountFor, confined, runtimeFolder } from '../confined.ts';
import type { RegistryHosting } from '../registry.ts';
import { startConfigured } from './configured.ts';
import type { GateConfiguration } from './gate/main.ts';
import type { Layout } from './layout.ts';
import { expectRealm } from './process.ts';

interface GateOptions {
  layout: Layout;
  host: string;
  port: number;
  /** PEM files. Null: plain HTTP. */
  tls: { certificate: string; key: string } | null;
  patience: number;
  diskReserve: number;
  log: Logger;
}

/** Needed to read the program and its files, to bind a low port, and to change to its account. */
const CAPABILITIES = ['dac_read_search', 'net_bind_service', 'setgid', 'setuid'];
/**
 * Parts of bodies are short-lived buffers outside of a small heap. Because of them, V8 would start to mark the whole heap
 * several times in each push, which takes longer than forwarding the bytes. The young generation is still collected.
 */
const nodeOptions = ['--no-incremental-marking', '--single-threaded-gc'];
/** Its extension is that of this module: .ts in a checkout, .js in an installed package. */
const main = join(import.meta.dirname, 'gate', `main${extname(import.meta.filename)}`);
/** Increment it with a change that must replace running gates instead of adopting them. */
const version = 1;

/** Starts or adopts the gate. @throws DriverError */
export async function startGate(options: GateOptions, hosting: RegistryHosting): Promise<Daemon> {
  const { layout, port, tls, patience, diskReserve, log } = options;
  const { certificate, issuer, service, realm } = hosting;
  const host = bindAddress(options.host);
  const account = accountFor('registry');
  const configuration: GateConfiguration = {
    ...{
      root: layout.root,
      runtime: runtimeFolder(layout.root),
      account: account && { uid: account.uid, gid: account.gid },
    },
    ...{ host, port, tls, certificate, issuer, service, patience, diskReserve },
  };
  return startConfigured({
    ...{ name: 'gate', folder: layout.distribution, log, startTimeout: 30 },
    settings: [version, configuration],
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

/** Bytes of unfinished uploads by prefix, as the gate last reported them. */
export async function readReport({ uploads }: Layout): Promise<Map<string, number>> {
  const text = await readFile(uploads, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}';
    throw error;
  });
  return new Map(Object.entries(JSON.parse(text) as Record<string, number>));
}

/** `host` if it is an address of this machine; otherwise (such as behind NAT) all addresses. */
function bindAddress(host: string): string | undefined {
  const own = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address));
  return isIP(host) && (own.includes(host) || host.startsWith('127.')) ? host : undefined;
}
