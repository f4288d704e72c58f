/** Creates load balancers for benchmarks. */
import { type Client, finished } from './client.ts';
import { type Cloudyard, ended, startCloudyard } from './cloudyard.ts';
import type { Member } from './proxies.ts';
import type { Workplace } from './workplace.ts';

export const balancersPath = '/cloud/v1/loadbalancers/1/1';
export const listenersPath = '/cloud/v1/lblisteners/1/1';
export const policiesPath = '/cloud/v1/l7policies/1/1';
export const poolsPath = '/cloud/v1/lbpools/1/1';
const firstPort = 8000;

export interface Balancer {
  /** URL of its first listener. */
  url: string;
  pools: string[];
}

/** Starts Cloudyard with real load balancers. */
export const startBalancing = (workplace: Workplace, command: 'start' | 'serve') =>
  startCloudyard(workplace, { command, settings: { CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy' } });

/** Creates a load balancer with one listener for each pool. Health checks use TCP every ten seconds. */
export async function createBalancer(cloudyard: Cloudyard, pools: Member[][], checked = false): Promise<Balancer> {
  const monitor = { type: 'TCP', delay: 10, timeout: 5, max_retries: 2 };
  const listeners = pools.map((members, i) => ({
    name: 'bench',
    protocol: 'HTTP',
    protocol_port: firstPort + i,
    insert_x_forwarded: false,
    pools: [
      {
        name: 'bench',
        protocol: 'HTTP',
        lb_algorithm: 'ROUND_ROBIN',
        members,
        ...(checked && { healthmonitor: monitor }),
      },
    ],
  }));
  const task = await ended(cloudyard, await cloudyard.request('POST', balancersPath, { name: 'bench', listeners }));
  const { loadbalancers, pools: made } = task['created_resources'];
  const { vip_address } = await cloudyard.request('GET', `${balancersPath}/${loadbalancers[0]}`);
  return { url: `http://${vip_address}:${firstPort}/`, pools: made };
}

function updatePath(pool: string): string {
  return `${poolsPath.replace('/v1/', '/v2/')}/${pool}`;
}

/** Updates the members of a pool. Returns the milliseconds until the task has finished. */
export function updateMembers(client: Client, pool: string, members: Member[]): Promise<number> {
  return finished(client, 'PATCH', updatePath(pool), JSON.stringify({ members }));
}
