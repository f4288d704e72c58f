import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { HostPart } from '../../hosts/part.ts';
import { silentLogger } from '../../platform/log.ts';
import type { LoadBalancerDriver, Peers } from '../load-balancer.ts';
import { restartingDriver } from '../restarting.ts';
import { balancerParts } from './balancer-parts.ts';
import { viewOf } from './test-view.ts';

it('a host that joins while the load balancers restart becomes a peer', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-parts-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const status = () => ({ driver: 'haproxy', real: true, healthy: true, detail: '' });
  const { promise: repaired, resolve: repair } = Promise.withResolvers<void>();
  let current: Peers | null = null;
  const open = async (peers: Peers | null) => {
    const idle = { name: 'haproxy', real: false, status, stop: async () => undefined } as unknown as LoadBalancerDriver;
    const create = () => {
      current = peers;
      return { ...idle, real: true, amongHosts: { setPeers: async (all: Peers | null) => void (current = all) } };
    };
    return restartingDriver<LoadBalancerDriver>({
      ...{ title: 'load balancers', name: 'haproxy', error: new Error('the port is in use'), failed: null, idle },
      ...{ create: create as unknown as () => LoadBalancerDriver, firstDelayMs: 1, log: silentLogger },
      start: async (driver) => {
        await repaired;
        return driver;
      },
    });
  };
  const [balancers] = balancerParts({
    ...{ dataDir, log: silentLogger, checkApi: null, checkRegistry: null, program: null },
    open,
    partOf: (opened) =>
      ({ start: async () => void (await opened()), hostsChanged: async () => undefined }) as unknown as HostPart<never>,
  });
  await balancers.start(viewOf(['h1']));
  // The agent calls again after an error.
  await expect(balancers.hostsChanged(viewOf(['h1', 'h2']))).rejects.toThrow('are not served');
  repair();
  await vi.waitFor(() => balancers.hostsChanged(viewOf(['h1', 'h2'])), { timeout: 30_000 });
  expect(current).toMatchObject({ self: { name: 'h1' }, others: [{ name: 'h2', address: '10.77.0.12' }] });
});
