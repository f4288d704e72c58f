/**
 * Load balancers connect for tenants from inside the operator's network. Each attack is sent to every operation that
 * accepts a member, and returns 400 at the field.
 */
import { describe, expect, it } from 'vitest';
import { builders, paths, pools, v2 } from '../../src/resources/load-balancers/test-balancers.ts';
import type { Configuration } from '../../src/main/configuration.ts';
import { type Cloudyard, useCloudyard } from '../harness.ts';

const balancers = '/cloud/v1/loadbalancers/1/1';
const good = { address: '10.0.0.1', protocol_port: 80 };
const protocols = [
  ['HTTP', 'HTTP'],
  ['HTTP', 'PROXY'],
  ['TCP', 'TCP'],
  ['TCP', 'PROXYV2'],
  ['HTTPS', 'HTTPS'],
  ['UDP', 'UDP'],
] as const;

const withoutNetworks = (shipped: Configuration): Configuration => ({
  ...shipped,
  regions: shipped.regions.map((region) => ({ ...region, member_networks: undefined })),
});

const ports = {
  controlPlane: () => ['10.0.0.5'],
  ownPorts: () => [
    { daemon: 'API', port: 8080 },
    { daemon: 'NFS', port: 2049 },
    { daemon: 'mountd', port: 20048 },
    { daemon: 'rpcbind', port: 111 },
    { daemon: 'registry', port: 5000 },
  ],
};

/** Sends a member to every operation that accepts one. Each returns 400 at these fields and changes nothing. */
function refusesEverywhere(cloud: Cloudyard, name: string, member: object, fields: string[]): void {
  const { aBalancer, aPool, counts } = builders(cloud);
  const at = (path: string) => fields.map((field) => `${path}${field}`);
  const refused = async (path: string, method: string, url: string, body: object) => {
    const before = await counts();
    const answer = await cloud.request(method, url, body);
    expect([answer.status, paths(answer)]).toEqual([400, at(path)]);
    expect(await counts()).toEqual(before);
    return answer;
  };

  it(`${name}: refused when a load balancer is created, with any protocol`, async () => {
    for (const [protocol, poolProtocol] of protocols) {
      const pool = { name: 'a pool', protocol: poolProtocol, lb_algorithm: 'ROUND_ROBIN', members: [good, member] };
      const listeners = [{ name: 'a listener', protocol, protocol_port: 80, pools: [pool] }];
      await refused('listeners.0.pools.0.members.1.', 'POST', balancers, { name: 'a balancer', listeners });
    }
  });

  it(`${name}: refused when a pool is created or updated, or a member is added`, async () => {
    const balancer = await aBalancer();
    const body = { name: 'a pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN', load_balancer_id: balancer };
    await refused('members.2.', 'POST', pools, {
      ...body,
      members: [good, { ...good, protocol_port: 81 }, member],
    });
    const pool = await aPool(body);
    await refused('members.0.', 'PATCH', `${v2(pools)}/${pool}`, { members: [member] });
    await refused('', 'POST', `${pools}/${pool}/member`, member);
    await refused('', 'POST', `${balancers}/pools/${pool}/members`, member);
    await refused('1.', 'PUT', `${balancers}/pools/${pool}/members`, [good, member]);
  });
}

describe('in a region without member networks', () => {
  const cloud = useCloudyard({
    configuration: withoutNetworks,
    controlPlane: ports,
    localNetworks: () => ['127.0.0.0/8', '::1', '10.0.0.7', 'fd00::7'],
  });

  const places: [name: string, ...addresses: string[]][] = [
    ['a member cannot be on loopback', '127.0.0.1', '::1', '127.255.0.1'],
    ['a member cannot be on loopback in another spelling', '::ffff:127.0.0.1', '::ffff:7f00:1', '::127.0.0.1', '0::1'],
    ['a member cannot be the metadata service', '169.254.169.254', '::ffff:169.254.169.254', 'fd00:ec2::254'],
    ['a member cannot be link-local', 'fe80::1', '169.254.1.1'],
    ['a member cannot be an address of the host', '10.0.0.7', 'fd00::7', '::ffff:10.0.0.7', '0.0.0.0', '::'],
    ['a member cannot be the database host', '10.0.0.5', '::ffff:10.0.0.5'],
    ['a member cannot be a load balancer', '127.64.0.1', '127.64.77.1', '::ffff:127.64.0.1'],
    ['a member cannot be a broadcast or multicast address', '255.255.255.255', '224.0.0.1', 'ff02::1'],
    [
      'a member cannot be an address of NAT64, 6to4 or Teredo',
      '64:ff9b::127.0.0.1',
      '2002:7f00:1::',
      '2001:0:7f00:1::',
    ],
  ];
  for (const [name, ...addresses] of places) {
    const [address, ...others] = addresses;
    refusesEverywhere(cloud, name, { address, protocol_port: 80 }, ['address']);
    refusesEverywhere(
      cloud,
      `${name}, nor can the address of its health check`,
      { ...good, protocol_port: 82, monitor_address: address },
      ['monitor_address'],
    );
    it(`${name}: ${others.join(', ')}`, async () => {
      const listenerOf = (address: string) => ({
        ...{ name: 'a listener', protocol: 'TCP', protocol_port: 80 },
        pools: [
          {
            ...{ name: 'a pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN' },
            members: [
              { address, protocol_port: 80 },
              { ...good, monitor_address: address },
            ],
          },
        ],
      });
      for (const other of others) {
        const answer = await cloud.post(balancers, { name: 'a balancer', listeners: [listenerOf(other)] });
        const path = 'listeners.0.pools.0.members';
        expect([other, answer.status, paths(answer)]).toEqual([
          ...[other, 400],
          [`${path}.0.address`, `${path}.1.monitor_address`],
        ]);
      }
    });
  }

  it('the error names the address, its problem and the fix', async () => {
    const members = [good, { address: '127.0.0.1', protocol_port: 80 }];
    const body = { name: 'a pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN', members };
    const answer = await cloud.post(pools, { ...body, load_balancer_id: await builders(cloud).aBalancer() });
    const message = "127.0.0.1 is loopback; members must be in the region's member_networks";
    expect(answer.body.errors).toEqual([{ path: 'members.1.address', message }]);
  });

  it.each(['2130706433', '0x7f.1', '127.1', '0177.0.0.1', '127.0.0.1%lo', 'fe80::1%eth0', 'localhost', '127.0.0.1 '])(
    'a member address cannot be written as %j',
    async (address) => {
      const members = [{ address, protocol_port: 80, monitor_address: address }];
      const body = { name: 'a pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN', members };
      const answer = await cloud.post(pools, { ...body, load_balancer_id: await builders(cloud).aBalancer() });
      expect([answer.status, paths(answer)]).toEqual([400, ['members.0.address', 'members.0.monitor_address']]);
    },
  );

  it('accepts members at private and public addresses', async () => {
    const { aBalancer, aPool, getPool } = builders(cloud);
    const members = ['10.0.0.1', '172.16.0.1', '192.168.1.1', '8.8.8.8', 'fd00::1', '2606:4700::1'].map((address) => ({
      ...{ address, protocol_port: 2049, monitor_address: address, monitor_port: 8080 },
    }));
    const pool = await aPool({ protocol: 'TCP', load_balancer_id: await aBalancer(), members });
    expect((await getPool(pool)).members).toHaveLength(6);
  });
});

describe('in the shipped region, where members may be on loopback', () => {
  const cloud = useCloudyard({ controlPlane: ports, localNetworks: () => ['127.0.0.0/8', '::1', '10.0.0.7'] });
  const local = (port: number, more: object = {}) => ({ address: '127.0.0.1', protocol_port: port, ...more });

  it('accepts the members of the README', async () => {
    const { aBalancer, aPool, getPool } = builders(cloud);
    const members = [local(9001), local(9002, { monitor_port: 9003 }), { ...good, monitor_address: '127.0.0.1' }];
    const pool = await aPool({ load_balancer_id: await aBalancer(), members });
    expect((await getPool(pool)).members).toHaveLength(3);
  });

  refusesEverywhere(cloud, 'a member cannot be the NFS port, which serves shares of other tenants', local(2049), [
    'protocol_port',
  ]);
  refusesEverywhere(cloud, 'a member cannot be the port of the mount protocol', local(20048), ['protocol_port']);
  refusesEverywhere(cloud, 'a member cannot be the port of rpcbind', local(111), ['protocol_port']);
  refusesEverywhere(cloud, 'a member cannot be the port of the registry', local(5000), ['protocol_port']);
  refusesEverywhere(cloud, 'a member cannot be the port of the API (/metrics, authorize)', local(8080), [
    'protocol_port',
  ]);
  refusesEverywhere(cloud, 'a member cannot be the API on another local address', { ...local(8080), address: '::1' }, [
    'protocol_port',
  ]);
  refusesEverywhere(
    cloud,
    'a member cannot be the API at an IPv4-mapped address',
    { ...local(8080), address: '::ffff:127.3.2.1' },
    ['protocol_port'],
  );
  refusesEverywhere(cloud, 'a health check cannot go to the API', local(9001, { monitor_port: 8080 }), [
    'monitor_port',
  ]);
  refusesEverywhere(
    cloud,
    'a health check of a remote member cannot go to the API',
    { ...local(8080), address: '10.0.0.1', monitor_address: '::1' },
    ['monitor_address'],
  );
  const vip = { address: '127.64.0.1', protocol_port: 80 };
  refusesEverywhere(cloud, 'a member cannot be a load balancer, which would bypass its allowed_cidrs', vip, [
    'address',
  ]);
  refusesEverywhere(
    cloud,
    'a health check cannot go to a load balancer',
    local(9001, { monitor_address: '127.64.0.1' }),
    ['monitor_address'],
  );
  refusesEverywhere(cloud, 'a member cannot be 169.254.169.254', { ...good, address: '169.254.169.254' }, ['address']);
  refusesEverywhere(cloud, 'a member cannot be the address of the host', { ...good, address: '10.0.0.7' }, ['address']);
  refusesEverywhere(cloud, 'a member cannot be the database host', { ...good, address: '10.0.0.5' }, ['address']);

  it('an update of a member cannot move its health check to a forbidden address', async () => {
    const { aBalancer, aPool, getPool } = builders(cloud);
    const pool = await aPool({ load_balancer_id: await aBalancer(), members: [local(9001)] });
    const [{ id }] = (await getPool(pool)).members;
    const change = (body: object) => cloud.patch(`${balancers}/pools/${pool}/members/${id}`, body);
    expect(paths(await change({ monitor_address: '169.254.169.254' }))).toEqual(['monitor_address']);
    expect(paths(await change({ monitor_address: '127.64.0.1' }))).toEqual(['monitor_address']);
    expect(paths(await change({ monitor_port: 8080 }))).toEqual(['monitor_port']);
    expect(paths(await change({ monitor_address: '::1', monitor_port: 8080 }))).toEqual(['monitor_port']);
    expect((await change({ monitor_address: '::1', monitor_port: 9002 })).status).toBe(200);
  });
});

describe('existing members that stricter rules forbid', () => {
  let strict = false;
  const cloud = useCloudyard({ controlPlane: ports, localNetworks: () => (strict ? ['10.0.0.1'] : []) });

  it('stay in their pool, which can be updated, but cannot be sent again', async () => {
    const { aBalancer, aPool } = builders(cloud);
    strict = false;
    const pool = await aPool({ load_balancer_id: await aBalancer(), members: [good] });
    strict = true;
    const statusOf = async () => (await cloud.get(`${pools}/${pool}`)).body.members[0].operating_status;
    // The sweep checks members again.
    await expect.poll(statusOf).toBe('ERROR');
    const change = async (body: object) => cloud.patch(`${v2(pools)}/${pool}`, body);
    expect((await cloud.ended(await change({ name: 'another name' }))).body.state).toBe('FINISHED');
    const [{ id }] = (await cloud.get(`${pools}/${pool}`)).body.members;
    const task = await cloud.ended(await cloud.patch(`${balancers}/pools/${pool}/members/${id}`, { weight: 7 }));
    expect(task.body.state).toBe('FINISHED');
    expect(paths(await change({ members: [good] }))).toEqual(['members.0.address']);
    expect((await cloud.ended(await change({ members: [] }))).body.state).toBe('FINISHED');
  });
});
