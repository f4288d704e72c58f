/**
 * Keeps NFSv3 registered in rpcbind. Ganesha registers only when it starts, and a killed rpcbind forgets everything: until the
 * next start of Ganesha no client could mount over NFSv3.
 *
 * Invariant: a registration of another server, or of Ganesha itself, is not replaced: rpcbind refuses a second one.
 */
import { opaque, words } from '../xdr.ts';
import type { ServerSettings } from './configuration.ts';
import { call } from '../rpc.ts';

/** rpcbind's local socket: registrations made by root over it are owned by root, as Ganesha's are. */
const SOCKET = '/run/rpcbind.sock';
/** RPCBPROC_SET. */
const SET = { program: 100_000, version: 4, procedure: 1 };
const CHECK_MS = 5000;

type Places = Pick<ServerSettings, 'bindAddress' | 'port' | 'mountPort'>;

/**
 * Registers the places that `served` returns every 5 s. Returns a stop function. `probe`: rejects while Ganesha does not respond;
 * then nothing is registered, because a Ganesha that starts registers itself, and exits if it cannot.
 */
export function keepRegistered(served: () => Places | null, probe: () => Promise<void>): () => void {
  let isStopped = false;
  const isServed = () => !isStopped && served() !== null;
  const check = async () => {
    const places = served();
    if (!places) return;
    await probe();
    await register(places, isServed);
  };
  // A failure is ignored: the next call tries again.
  const timer = setInterval(() => void check().catch(() => undefined), CHECK_MS).unref();
  return () => {
    isStopped = true;
    clearInterval(timer);
  };
}

async function register({ bindAddress, port, mountPort }: Places, isServed: () => boolean): Promise<void> {
  const networks = networksOf(bindAddress ?? '::');
  const programs = [
    ...[3, 4].map((version) => ({ program: 100_003, version, port })),
    ...[1, 3].map((version) => ({ program: 100_005, version, port: mountPort })),
  ];
  for (const { program, version, port: served } of programs) {
    for (const [network, address] of Object.entries(networks)) {
      if (!isServed()) return;
      const place = `${address}.${served >> 8}.${served & 0xff}`;
      const parameters = [words(program, version), opaque(network), opaque(place), opaque('')];
      await call({ path: SOCKET }, SET, Buffer.concat(parameters));
    }
  }
}

/** A server that listens on `::` also has the connections over IPv4. */
function networksOf(address: string): Record<string, string> {
  const [v4, v6] = [{ tcp: '0.0.0.0' }, { tcp6: '::' }];
  if (address === '::') return { ...v4, ...v6 };
  return address.includes(':') ? v6 : v4;
}
