/**
 * The ports and hosts of Cloudyard that load balancers must not reach: where it listens, and the hosts that it depends on.
 * The settings name most of them. The port of an API server is known only when it listens: this process adds its own, and
 * API servers in other processes announce theirs in the database.
 *
 * Failure modes: a name that does not resolve is logged, and its host is not protected until a later `refresh` resolves it.
 */
import { lookup } from 'node:dns/promises';
import { localNetworks } from '../platform/local-networks.ts';
import type { Logger } from '../platform/log.ts';
import { isInNetworks } from '../platform/network-address.ts';
import {
  type ControlPlaneEndpoint,
  controlPlaneEndpoints,
  type OwnPort,
  ownPorts,
  webEndpointOf,
} from '../platform/own-ports.ts';
import { within } from '../platform/within.ts';
import { driverEndpoints, driverPorts } from './drivers.ts';
import type { Settings } from './settings.ts';

export type ControlPlane = Awaited<ReturnType<typeof findControlPlane>>;

const lookupTimeoutMs = 3000;
const thisHost = ['127.0.0.0/8', '::1/128', '0.0.0.0/8', '::/128'];

/** Resolves the hosts that the settings name. */
export async function findControlPlane(settings: Settings, log: Logger) {
  const fixed = [...ownPorts(settings), ...driverPorts(settings)];
  const endpoints = new Map<string, ControlPlaneEndpoint>();
  const addresses = new Map<string, string[]>();
  const ports = new Map<number, OwnPort>();

  const resolve = async ({ name, host, port }: ControlPlaneEndpoint) => {
    const found = await addressesOf(host);
    if (found.length > 0) addresses.set(host, found);
    else if (!addresses.has(host))
      log.warn({ part: name, host }, 'the host of a part of the control plane does not resolve');
    const here = [...thisHost, ...localNetworks()];
    if (port !== null && found.some((address) => isInNetworks(address, here))) ports.set(port, { daemon: name, port });
  };
  const refresh = async () => void (await Promise.all([...endpoints.values()].map(resolve)));

  for (const endpoint of [...controlPlaneEndpoints(settings), ...driverEndpoints(settings)]) {
    endpoints.set(endpoint.name, endpoint);
  }
  await refresh();
  return {
    controlPlane: () => [...addresses.values()].flat(),
    ownPorts: () => [...fixed, ...ports.values()],
    /** Adds a server of Cloudyard that listens at this URL. */
    async add(name: string, url: string): Promise<void> {
      for (const endpoint of webEndpointOf(name, url)) {
        const key = `${name} at ${url}`;
        if (endpoints.has(key)) continue;
        endpoints.set(key, endpoint);
        await resolve(endpoint);
      }
    },
    /** Resolves all names again. */
    refresh,
  };
}

/** Empty if a name does not resolve in time. */
async function addressesOf(host: string): Promise<string[]> {
  const found = await within(lookupTimeoutMs, () => lookup(host, { all: true })).catch(() => []);
  return found.map(({ address }) => address);
}
