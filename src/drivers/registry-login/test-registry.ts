/** Registries for tests on loopback: CNCF distribution with one login, and a stub server. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../../test/free-port.ts';

export const login = 'puller';
export const password = 'correct-horse-9f3b2c6d';
/** bcrypt with the lowest cost. */
const htpasswd = `${login}:$2b$04$whQkmbJKwdaQMUn1cvohKeeTWBCn0zVcsNTH3PU1BOtPB3yklkY1O\n`;

interface TestRegistry {
  authority: string;
  stop(): Promise<void>;
}

/** `token`: use a token server instead of a password file. */
export async function startRegistry(folder: string, token?: { realm: string; bundle: string }): Promise<TestRegistry> {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const [passwords, configuration] = [join(folder, 'htpasswd'), join(folder, 'registry.json')];
  writeFileSync(passwords, htpasswd);
  const auth = token
    ? { token: { realm: token.realm, service: 'test', issuer: 'test', rootcertbundle: token.bundle } }
    : { htpasswd: { realm: 'test', path: passwords } };
  // JSON is valid YAML.
  writeFileSync(
    configuration,
    JSON.stringify({
      version: 0.1,
      storage: { filesystem: { rootdirectory: join(folder, 'storage') } },
      http: { addr: `127.0.0.1:${port}` },
      auth,
    }),
  );
  const child = spawn('docker-registry', ['serve', configuration], { stdio: 'ignore' });
  const authority = `127.0.0.1:${port}`;
  for (let tries = 0; !(await fetch(`http://${authority}/v2/`).catch(() => null)); tries++) {
    if (tries > 200) throw new Error('docker-registry did not start');
    await sleep(50);
  }
  return {
    authority,
    async stop() {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

/** Starts a server that responds with the given listener, and records its requests. */
export async function startTestServer(): Promise<{
  authority: string;
  requests: Pick<IncomingMessage, 'url' | 'headers'>[];
  answer(listener: RequestListener): void;
  stop(): Promise<void>;
}> {
  let listener: RequestListener = (_request, response) => void response.writeHead(404).end();
  const requests: Pick<IncomingMessage, 'url' | 'headers'>[] = [];
  const server: Server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    authority: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: (other) => void (listener = other),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
