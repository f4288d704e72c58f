/**
 * One host with everything that tenants share: the API, NFS-Ganesha and HAProxy as real processes, and the shipped regions
 * file, which allows members on loopback. The victim's share admits 127.0.0.1.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createConnection } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { defaultNetwork, newShare, shares } from '../e2e/storm.ts';
import { nfs, nfsUrl } from '../nfs-client.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 });

const parts = ['nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'haproxy', 'root'] as const;
const balancers = '/cloud/v1/loadbalancers/1/1';

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a tenant of a host', () => {
  let yard: Yard;
  let server: Running;
  let honest: Server;
  /** Of the victim: its share with a file, and the address of a load balancer that admits one other client only. */
  let share: { connection_point: string };
  let guarded: string;
  /** The attacker's load balancer, with one allowed member. */
  let balancer: string;
  let address: string;
  let pool: string;
  let port: number;

  const local = (protocol_port: number) => ({ address: '127.0.0.1', protocol_port });
  const tcp = (members: object[], more: object = {}) => ({
    name: 'a balancer',
    listeners: [
      {
        ...{ name: 'a listener', protocol: 'TCP', protocol_port: port, ...more },
        pools: [{ name: 'a pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN', members }],
      },
    ],
  });
  const made = async (body: object) => {
    const task = await yard.ended(await yard.post(balancers, body));
    expect(task).toMatchObject({ state: 'FINISHED', error: null });
    const [id] = task.created_resources.loadbalancers;
    return {
      id,
      pool: task.created_resources.pools[0],
      address: (await yard.get(`${balancers}/${id}`)).body.vip_address,
    };
  };
  const refused = async (member: object, field: string, why: string) => {
    const answer = await yard.post(balancers, tcp([member]));
    const path = `listeners.0.pools.0.members.0.${field}`;
    expect([answer.status, answer.body.errors]).toEqual([400, [{ path, message: expect.stringContaining(why) }]]);
  };
  const members = async () => (await yard.get(`/cloud/v1/lbpools/1/1/${pool}`)).body.members;
  const through = async () => (await fetch(`http://${address}:${port}/`, { headers: { connection: 'close' } })).text();
  /** Changes the member's row, as an older version may have left it, and runs its job. */
  const move = async (to: number) => {
    await yard.sql('update lb_members set protocol_port = $1 where protocol_port = $2', [to, 9]);
    return yard.ended(await yard.post(`${balancers}/${balancer}/failover`, {}));
  };

  beforeAll(async () => {
    honest = createServer((_request, response) => void response.end('honest'));
    await new Promise<void>((resolve) => honest.listen(0, '127.0.0.1', resolve));
    yard = await openYard({
      CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy',
      CLOUDYARD_REGISTRY_PORT: String(await freePort()),
    });
    server = await yard.start(['start']);
    port = await freePort();
    const access = [{ access_mode: 'rw', ip_address: '127.0.0.1' }];
    const task = await yard.ended(await yard.post(shares, newShare('victim', await defaultNetwork(yard), { access })));
    share = (await yard.get(`${shares}/${task.created_resources.file_shares[0]}`)).body;
    writeFileSync(join(yard.folder, 'secret'), 'of the victim');
    await nfs('nfs-cp', join(yard.folder, 'secret'), nfsUrl(yard, share.connection_point, '/secret'));
    const honestPort = (honest.address() as AddressInfo).port;
    guarded = (await made(tcp([local(honestPort)], { allowed_cidrs: ['127.9.9.9/32'] }))).address;
    ({ id: balancer, pool, address } = await made(tcp([local(honestPort), local(9)])));
  });
  afterAll(() => {
    yard?.cleanUp();
    honest?.close();
  });

  it('the start warns that members may be on loopback', () => {
    expect(server.stdout()).toMatch(/Region 1: load balancers may have members on loopback \(member_networks/);
    expect(server.stdout()).toMatch(/Do not allow this in production/);
  });

  it('cannot read a share that admits 127.0.0.1 through a TCP balancer', async () => {
    expect(await nfs('nfs-cat', nfsUrl(yard, share.connection_point, '/secret'))).toBe('of the victim');
    await refused(local(yard.nfsPort), 'protocol_port', "Cloudyard's own (NFS)");
    await refused(local(yard.mountPort), 'protocol_port', "Cloudyard's own (mountd)");
    await refused(local(111), 'protocol_port', "Cloudyard's own (rpcbind)");
  });

  it('cannot read it through an existing member either: the member is omitted and the task fails', async () => {
    const task = await move(yard.nfsPort);
    expect(task).toMatchObject({ state: 'ERROR', error: expect.stringContaining(`port ${yard.nfsPort} of 127.0.0.1`) });
    await until(async () => (await through()) === 'honest', 10, 'the other member serves');
    for (let n = 0; n < 6; n += 1) expect(await through()).toBe('honest');
    const stolen = `nfs://${address}${share.connection_point.split(':')[1]}/secret?version=4&nfsport=${port}`;
    await expect(nfs('nfs-cat', stolen)).rejects.toThrow();
    await until(async () => (await members())[1].operating_status === 'ERROR', 10, 'shown as ERROR');
    // Once reported, it does not fail other changes.
    const again = await yard.ended(await yard.post(`${balancers}/${balancer}/failover`, {}));
    expect(again).toMatchObject({ state: 'FINISHED', error: null });
  });

  it('cannot reach the API around its proxy: /metrics, authorize', async () => {
    await refused(local(yard.port), 'protocol_port', "Cloudyard's own (API)");
    await refused({ ...local(yard.port), address: '::ffff:127.0.0.1' }, 'protocol_port', "Cloudyard's own (API)");
    await refused({ ...local(80), monitor_port: yard.port }, 'monitor_port', "Cloudyard's own (API)");
  });

  it('cannot bypass the allowed_cidrs of another load balancer by adding it as a member', async () => {
    expect(await isClosed(guarded, port)).toBe(true);
    await refused({ address: guarded, protocol_port: port }, 'address', 'a load balancer cannot be a member');
    await refused({ ...local(80), monitor_address: guarded }, 'monitor_address', 'a load balancer cannot be a member');
  });

  it('cannot reach the metadata service', async () => {
    await refused({ address: '169.254.169.254', protocol_port: 80 }, 'address', '169.254.169.254 is link-local');
  });

  it('loses only the members that a stricter regions file forbids, from the next start', async () => {
    await server.stop();
    const regions = join(yard.folder, `${randomUUID()}.yaml`);
    const region = ['id: 1', 'display_name: local', 'country: LU', 'vip_range: 127.64.0.0/16'];
    writeFileSync(regions, `regions:\n  - ${region.join('\n    ')}\n`);
    server = await yard.start(['start'], { CLOUDYARD_REGIONS_FILE: regions });
    expect(server.stdout()).not.toContain('on loopback');
    await until(async () => (await members())[0].operating_status === 'ERROR', 20, 'shown as ERROR');
    expect(await isClosed(address, port)).toBe(true);
    await refused(local(9001), 'address', "127.0.0.1 is loopback; members must be in the region's member_networks");
    await server.stop();
    server = await yard.start(['start']);
    await until(
      () =>
        through()
          .then((text) => text === 'honest')
          .catch(() => false),
      20,
      'served again',
    );
  });
});

/** Whether a connection is closed without a response. */
function isClosed(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port }, () => socket.write('GET / HTTP/1.0\r\n\r\n'));
    socket.setTimeout(10_000, () => (socket.destroy(), resolve(false)));
    socket.once('data', () => (socket.destroy(), resolve(false)));
    socket.once('error', () => undefined).once('close', () => resolve(true));
  });
}
