/** Helpers for tests of running load balancers: members, and a comparison of HAProxy's state with the API. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { freePort } from '../free-port.ts';
import { layoutOf } from '../../src/drivers/haproxy/layout.ts';
import { parseCounters } from '../../src/drivers/haproxy/readings.ts';
import { retrying, runtimeSocket } from '../../src/drivers/haproxy/runtime-socket.ts';
import { parseServersState } from '../../src/drivers/haproxy/servers.ts';
import { nfs, nfsUrl } from '../nfs-client.ts';
import type { Yard } from '../processes.ts';
import { requestTo } from '../traffic.ts';
import { until } from '../until.ts';
import { defaultNetwork, newShare, shares } from './storm.ts';

export const balancers = '/cloud/v1/loadbalancers/1/1';
export const listeners = '/cloud/v1/lblisteners/1/1';
export const pools = '/cloud/v1/lbpools/1/1';
export const v2 = (path: string) => path.replace('/v1/', '/v2/');

/** Any number of members. Each has its own address; one program serves all of them. */
export interface Members {
  /** The member's fields in a request. */
  member(n: number): { address: string; protocol_port: number };
  /** From now on this member responds with 503. */
  retire(n: number): void;
  close(): void;
}

/** Listens on every address of 127.0.0.0/8. Responds with the address of the member. */
export async function openMembers(): Promise<Members> {
  const retired = new Set<string>();
  const addressOf = (n: number) => `127.20.${Math.floor(n / 250)}.${(n % 250) + 1}`;
  const server = createServer({ keepAliveTimeout: 60_000 }, ({ socket: { localAddress = '' } }, response) => {
    response.writeHead(retired.has(localAddress) ? 503 : 200).end(localAddress);
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    member: (n) => ({ address: addressOf(n), protocol_port: port }),
    retire: (n) => void retired.add(addressOf(n)),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

export function proxyOf({ dataDir }: Pick<Yard, 'dataDir'>, masterSocket = layoutOf(dataDir).masterSocket) {
  const ask = retrying(runtimeSocket(masterSocket, '@1;'));
  return {
    /** The pid of the process that accepts connections. */
    async worker(): Promise<number> {
      return Number(/^Pid: (\d+)$/m.exec(await ask(['show info']))?.[1]);
    },
    /** `pool member address:port weight` of every member in service, and the ids of the listeners. */
    async has(): Promise<{ members: string[]; listeners: string[] }> {
      const servers = parseServersState(await ask(['show servers state'])).filter(({ maint }) => !maint);
      const members = servers.map(({ backend, name, address, port, weight }) =>
        [backend.replace('pool_', ''), name.replace(/^\w+_/, ''), `${address}:${port}`, weight].join(' '),
      );
      return {
        members: members.sort(),
        listeners: [...parseCounters(await ask(['show stat -1 1 -1']), new Map()).keys()].sort(),
      };
    },
  };
}

/** The same data from the API. */
async function rowsOf(yard: Yard): Promise<{ members: string[]; listeners: string[] }> {
  const found = (await yard.insist('GET', `${pools}?details=true`)).body.results;
  const members = found.flatMap((pool: any) =>
    pool.members.map((m: any) => [pool.id, m.id, `${m.address}:${m.protocol_port}`, m.weight].join(' ')),
  );
  const { results } = (await yard.insist('GET', listeners)).body;
  return { members: members.sort(), listeners: results.map(({ id }: { id: string }) => id).sort() };
}

export async function expectProxyEqualsRows(yard: Yard): Promise<void> {
  const proxy = proxyOf(yard);
  const compare = async () => {
    const has = await proxy.has().catch((error: Error) => error.message);
    return JSON.stringify(has) === JSON.stringify(await rowsOf(yard));
  };
  await until(compare, 10, 'HAProxy to match the rows').catch(() => undefined);
  expect(await proxy.has()).toEqual(await rowsOf(yard));
}

/** Number of changes by reload and at run time, from `/metrics`. */
export async function changesOf(yard: Yard): Promise<{ reload: number; runtime: number }> {
  const { body } = await yard.get('/metrics', { token: null });
  const of = (how: string) =>
    Number(new RegExp(`^cloudyard_load_balancer_changes_total\\{how="${how}"\\} (\\d+)$`, 'm').exec(body)?.[1]);
  return { reload: of('reload'), runtime: of('runtime') };
}

/** A share with a file, and a load balancer, that clients use. */
export interface Served {
  /** @throws if the file cannot be read over NFS */
  readFile(): Promise<void>;
  /** Writes another file. @throws if that fails */
  writeFile(): Promise<void>;
  /** @throws if the load balancer does not respond */
  request(): Promise<void>;
  close(): void;
}

/** NFSv4 does not depend on the rpcbind of this machine, which other servers may start and stop. */
export async function serveBoth(yard: Yard, version: 3 | 4 = 3): Promise<Served> {
  const members = await openMembers();
  const port = await freePort();
  const pool = { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members: [members.member(0)] };
  const listener = { name: 'web', protocol: 'HTTP', protocol_port: port, pools: [pool] };
  const [shared, balanced] = await Promise.all([
    yard.ended(await yard.post(shares, newShare('share', await defaultNetwork(yard)))),
    yard.ended(await yard.post(balancers, { name: 'a balancer', listeners: [listener] })),
  ]);
  expect([shared.state, balanced.state]).toEqual(['FINISHED', 'FINISHED']);
  const { vip_address } = (await yard.get(`${balancers}/${balanced.created_resources.loadbalancers[0]}`)).body;
  const { connection_point } = (await yard.get(`${shares}/${shared.created_resources.file_shares[0]}`)).body;
  const file = join(yard.folder, 'hello');
  writeFileSync(file, 'hello');
  await nfs('nfs-cp', file, nfsUrl(yard, connection_point, '/hello', version));
  return {
    async readFile() {
      const text = await nfs('nfs-cat', nfsUrl(yard, connection_point, '/hello', version));
      if (text !== 'hello') throw new Error(`the file contains ${JSON.stringify(text)}`);
    },
    async writeFile() {
      await nfs('nfs-cp', file, nfsUrl(yard, connection_point, `/${randomUUID()}`, version));
    },
    request: () => requestTo(vip_address, port),
    close: members.close,
  };
}
