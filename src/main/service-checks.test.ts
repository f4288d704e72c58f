import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createApiCheck, createRegistryCheck } from './service-checks.ts';

/** A server that answers each path with a status. Returns its port. */
async function serve(statuses: Record<string, number>): Promise<number> {
  const server = createServer((request, response) => {
    response.statusCode = statuses[request.url!] ?? 404;
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe('the check of registries', () => {
  it('passes where distribution asks for a token', async () => {
    await createRegistryCheck({ port: await serve({ '/v2/': 401 }) }, false)();
  });

  it('fails where the gate does not reach distribution, and without a gate', async () => {
    const down = createRegistryCheck({ port: await serve({ '/v2/': 502 }) }, false);
    await expect(down()).rejects.toThrow('the registry answers 502');
    await expect(createRegistryCheck({ port: 1 }, false)()).rejects.toThrow('ECONNREFUSED');
  });
});

it('the check of the API passes where its server answers /healthz', async () => {
  const tls = { files: null, acme: null };
  const check = (port: number) =>
    createApiCheck({ host: '0.0.0.0', port, tls } as Parameters<typeof createApiCheck>[0]);
  await check(await serve({ '/healthz': 200 }))();
  await expect(check(await serve({ '/healthz': 503 }))()).rejects.toThrow('the API server answers 503');
});
