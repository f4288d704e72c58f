/** The limits of connections that a server has without settings. slow-clients.test.ts tests what they do. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { defaultConnectionLimits } from '../../src/http/connection-limits.ts';
import { type ApiOptions, createApi } from '../../src/main/api.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { useCloudyard } from '../harness.ts';

const cloud = useCloudyard({ driver: null });

async function serverOf(options: Partial<ApiOptions> = {}) {
  const app = await createApi(cloud.services, { log: silentLogger, ...options });
  onTestFinished(() => app.close());
  return app.server;
}

describe('the default limits of connections', () => {
  it('are set on the server', async () => {
    const { headersTimeout, requestTimeout, keepAliveTimeout, maxConnections } = await serverOf();
    expect({ headersTimeout, requestTimeout, keepAliveTimeout }).toEqual({
      headersTimeout: 15_000,
      requestTimeout: 120_000,
      keepAliveTimeout: 72_000,
    });
    expect(maxConnections).toBeGreaterThanOrEqual(64);
    expect(maxConnections).toBeLessThanOrEqual(8192);
  });

  it('are set on the server of a process that is only a worker', async () => {
    expect(await serverOf({ resources: false })).toMatchObject({
      headersTimeout: 15_000,
      requestTimeout: 120_000,
      keepAliveTimeout: 72_000,
    });
  });

  it.each([
    [1024, 768, 192],
    [20_000, 8192, 2048],
    [100, 64, 16],
  ])('of %i descriptors leave room for other files', async (descriptors, connections, connectionsPerAddress) => {
    expect(defaultConnectionLimits(descriptors)).toMatchObject({ connections, connectionsPerAddress });
  });
});
