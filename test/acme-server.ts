/** A real ACME server for tests: pebble, with a DNS server whose names all lead to 127.0.0.1. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { spawnChild } from '../src/platform/child-process.ts';
import { testCertificate } from '../src/platform/tls/test-certificates.ts';

export type TestAcmeServer = Awaited<ReturnType<typeof openAcmeServer>>;

/** `httpPort`: where it looks for challenges. `validSeconds`: the life of its certificates. */
export async function openAcmeServer(options: { httpPort: number; validSeconds: number }) {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-acme-'));
  const [port, dnsPort, apiPort] = [await freePort(), await freePort(), await freePort()];
  const { certificate, key } = testCertificate();
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const [caFile, keyFile] = [file('certificate.pem', certificate), file('key.pem', key)];
  const profile = { description: 'tests', validityPeriod: options.validSeconds };
  const configuration = {
    pebble: {
      listenAddress: `127.0.0.1:${port}`,
      certificate: caFile,
      privateKey: keyFile,
      httpPort: options.httpPort,
      tlsPort: options.httpPort,
      profiles: { default: profile },
    },
  };
  const configurationFile = file('pebble.json', JSON.stringify(configuration));
  const dns = `127.0.0.1:${dnsPort}`;
  const addresses = ['-dns01', dns, '-management', `127.0.0.1:${apiPort}`, '-defaultIPv6', ''];
  const others = ['-http01', '', '-https01', '', '-tlsalpn01', '', '-doh', ''];
  const running = new Map<string, ReturnType<typeof spawnChild>>();
  const run = (name: string, args: string[]) =>
    running.set(
      name,
      spawnChild(name, args, { stdio: 'ignore', env: { PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0' } }),
    );
  const end = async (name: string) => {
    const child = running.get(name);
    running.delete(name);
    if (!child || child.exitCode !== null) return;
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exited;
  };
  run('pebble-challtestsrv', [...addresses, ...others]);
  return {
    /** URL of its directory. */
    url: `https://localhost:${port}/dir`,
    /** PEM file of its own authority. */
    caFile,
    folder,
    /** `host:port` of the DNS server. */
    dns,
    /** URL of the API that sets records. */
    dnsApi: `http://127.0.0.1:${apiPort}`,
    start: async () => void run('pebble', ['-config', configurationFile, '-dnsserver', dns]),
    stop: () => end('pebble'),
    async cleanUp(): Promise<void> {
      await end('pebble');
      await end('pebble-challtestsrv');
      rmSync(folder, { recursive: true });
    },
  };
}
