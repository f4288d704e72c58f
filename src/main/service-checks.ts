/** Whether the services of this host work whose address the hosts of a region share: the API and the registries. */
import { get as httpsGet } from 'node:https';
import { get as httpGet } from '../platform/node-http.ts';
import type { Settings } from './settings.ts';

const timeoutMs = 1000;

/** Rejects if it does not answer. Its database may be away: that is the same on every host. */
export function createApiCheck({ host, port, tls }: Pick<Settings, 'host' | 'port' | 'tls'>): () => Promise<void> {
  const isTls = tls.files !== null || tls.acme !== null;
  return () => expectStatus({ what: 'the API server', host: localHost(host), port, path: '/healthz', isTls }, 200);
}

const loopback = '127.0.0.1';

/** Where this host reaches a server that listens on `host`. */
export const localHost = (host: string): string => (host === '0.0.0.0' || host === '::' ? loopback : host);

const unauthorized = 401;

/**
 * Rejects if registries are not served. The gate forwards the request to distribution, which asks for a token. It listens on
 * all addresses, because the one that moves may be on another host.
 */
export function createRegistryCheck({ port }: { port: number }, isTls: boolean): () => Promise<void> {
  return () => expectStatus({ what: 'the registry', host: loopback, port, path: '/v2/', isTls }, unauthorized);
}

interface Target {
  what: string;
  host: string;
  port: number;
  path: string;
  isTls: boolean;
}

function expectStatus({ what, isTls, ...target }: Target, expected: number): Promise<void> {
  // The certificate is for the name of the service.
  const options = { ...target, timeout: timeoutMs, agent: false as const, rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const request = (isTls ? httpsGet : httpGet)(options, (response) => {
      response.resume();
      if (response.statusCode === expected) resolve();
      else reject(new Error(`${what} answers ${response.statusCode}`));
    });
    request.on('timeout', () => request.destroy(new Error(`${what} does not answer`)));
    request.on('error', reject);
  });
}
