/**
 * Keeps NFSv3 registered in rpcbind. Ganesha registers only when it starts, and a killed rpcbind forgets everything: until the
 * next start of Ganesha no client could mount over NFSv3.
 *
 * Invariant: a registration of another server, or of Ganesha itself, is not replaced: rpcbind refuses a second one.
 */
import type { ServerSettings } from './configuration.ts';
import { call, text, words } from './rpc.ts';

/** Of rpcbind. By it, what root registers belongs to root, as a registration of Ganesha does. */
const SOCKET = '/run/rpcbind.sock';
/** RPCBPROC_SET. */
const SET = { program: 100_000, version: 4, procedure: 1 };
const CHECK_MS = 5000;

type Places = Pick<ServerSettings, 'bindAddress' | 'port' | 'mountPort'>;

/** Registers from time to time what `served` returns; null: nothing. Returns a function that ends this. */
export function keepRegistered(served: () => Places | null): () => void {
  const timer = setInterval(() => {
    const places = served();
    // A failure is ignored: the next call tries again.
    if (places) void register(places).catch(() => undefined);
  }, CHECK_MS).unref();
  return () => clearInterval(timer);
}

async function register({ bindAddress, port, mountPort }: Places): Promise<void> {
  const networks = { tcp: '0.0.0.0', ...((bindAddress ?? '::').includes(':') && { tcp6: '::' }) };
  const programs = [
    ...[3, 4].map((version) => ({ program: 100_003, version, port })),
    ...[1, 3].map((version) => ({ program: 100_005, version, port: mountPort })),
  ];
  for (const { program, version, port: served } of programs) {
    for (const [network, address] of Object.entries(networks)) {
      const place = `${address}.${served >> 8}.${served & 0xff}`;
      const parameters = [words(program, version), text(network), text(place), text('')];
      await call({ path: SOCKET }, SET, Buffer.concat(parameters));
    }
  }
}
