/** The Terraform text, parsed and compared with the schemas of the official provider. Source: its docs/resources, 0.34. */
import { describe, expect, it } from 'vitest';
import { codeFor } from '../../console/src/code/code-for.ts';
import type { Json, JsonObject } from '../../console/src/code/request.ts';
import { resources } from '../../console/src/code/terraform-resources.ts';
import { operationsById } from './operations.ts';
import { pythonSkipReason, usePythonCode } from './python-code.ts';

interface Schema {
  required: string;
  optional: string;
  blocks?: Record<string, Schema>;
}

const place = 'project_id region_id';
const duration = { required: '', optional: 'weeks days hours minutes' };
const provider: Record<string, Schema> = {
  gcore_file_share: {
    required: 'name protocol size type_name',
    optional: 'tags',
    blocks: {
      access: { required: 'access_mode ip_address', optional: '' },
      network: { required: '', optional: 'network_id subnet_id' },
      share_settings: { required: '', optional: 'allowed_characters path_length root_squash' },
    },
  },
  gcore_lblistener: {
    required: 'loadbalancer_id name protocol protocol_port',
    optional:
      'allowed_cidrs connection_limit insert_x_forwarded secret_id sni_secret_id timeout_client_data ' +
      'timeout_member_connect timeout_member_data',
    blocks: { user_list: { required: 'encrypted_password username', optional: '' } },
  },
  gcore_lbmember: {
    required: 'address pool_id protocol_port',
    optional: 'instance_id subnet_id weight',
  },
  gcore_lbpool: {
    required: 'lb_algorithm name protocol',
    optional: 'listener_id loadbalancer_id',
    blocks: {
      health_monitor: {
        required: 'delay max_retries timeout type',
        optional: 'expected_codes http_method max_retries_down url_path',
      },
      session_persistence: {
        required: 'type',
        optional: 'cookie_name persistence_granularity persistence_timeout',
      },
    },
  },
  gcore_lifecyclepolicy: {
    required: 'name',
    optional: 'action status',
    blocks: {
      volume: { required: 'id', optional: '' },
      schedule: {
        required: 'max_quantity',
        optional: 'resource_name_template',
        blocks: {
          cron: { required: '', optional: 'day day_of_week hour minute month timezone week' },
          interval: duration,
          retention_time: duration,
        },
      },
    },
  },
  gcore_loadbalancerv2: {
    required: 'name',
    optional: 'flavor metadata_map preferred_connectivity vip_ip_family vip_network_id vip_port_id vip_subnet_id',
  },
  gcore_network: { required: 'name', optional: 'create_router metadata_map type' },
  gcore_secret: { required: 'certificate certificate_chain name private_key', optional: 'expiration' },
  gcore_snapshot: { required: 'name volume_id', optional: 'description metadata' },
  gcore_subnet: {
    required: 'cidr name network_id',
    optional: 'connect_to_network_router dns_nameservers enable_dhcp gateway_ip metadata_map',
    blocks: { host_routes: { required: 'destination nexthop', optional: '' } },
  },
  gcore_volume: { required: 'name', optional: 'image_id metadata_map size snapshot_id type_name' },
};

function terraformOf(operationId: string, body: Json, params: Record<string, string | number> = {}): string | null {
  const { method, path } = operationsById.get(operationId)!;
  const all = { project_id: 3, region_id: 4, ...params };
  return codeFor({ operationId, method, path, params: all, body, url: 'http://127.0.0.1:8080' }).terraform;
}

/** Each error of a block: an unknown or a missing name. */
function faultsOf(where: string, block: Record<string, any>, { required, optional, blocks = {} }: Schema): string[] {
  const names = Object.keys(block);
  const known = `${required} ${optional} ${place}`.split(' ');
  const strange = names.filter((name) => !known.includes(name) && !blocks[name]);
  const missing = required.split(' ').filter((name) => name && !names.includes(name));
  const inner = Object.entries(blocks).flatMap(([name, schema]) =>
    (block[name] ?? []).flatMap((item: Record<string, any>) => faultsOf(`${where}.${name}`, item, schema)),
  );
  return [
    ...strange.map((name) => `${where}.${name} is unknown`),
    ...missing.map((name) => `${where}.${name} is missing`),
    ...inner,
  ];
}

const withoutTemplates = (text: string) => text.replaceAll('$${', '${').replaceAll('%%{', '%{');
const reason = pythonSkipReason();

describe.skipIf(reason !== null)(reason ?? 'the Terraform text', () => {
  const python = usePythonCode();
  const resourcesOf = async (text: string | null) => {
    const { resource } = await python.hcl(text!);
    return (resource as Record<string, any>[]).map((one) => {
      const [[type, labelled]] = Object.entries(one) as [[string, Record<string, any>]];
      const [[label, block]] = Object.entries(labelled) as [[string, any]];
      return { type, label, block };
    });
  };
  const faultsIn = async (text: string | null) =>
    (await resourcesOf(text)).flatMap(({ type, block }) => faultsOf(type, block, provider[type]!));

  it('of the example of every operation has the names of the provider', async () => {
    for (const operationId of Object.keys(resources)) {
      const params = { pool_id: 'pool' };
      const text = terraformOf(operationId, operationsById.get(operationId)!.example!, params);
      expect([operationId, await faultsIn(text)]).toEqual([operationId, []]);
    }
  });

  it('has the names of the provider for every field that it takes', async () => {
    const healthmonitor = { type: 'HTTP', delay: 1, timeout: 1, max_retries: 1, url_path: '/', http_method: 'GET' };
    const members = [{ address: '127.0.0.1', protocol_port: 1, weight: 2, backup: false, admin_state_up: true }];
    const session_persistence = { type: 'APP_COOKIE', cookie_name: 'a' };
    const pools = [
      { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', healthmonitor, members, session_persistence },
    ];
    const listeners = [
      {
        name: 'web',
        protocol: 'HTTP',
        protocol_port: 80,
        user_list: [{ username: 'a', encrypted_password: 'b' }],
        pools,
      },
    ];
    const text = terraformOf('createLoadBalancer', { name: 'web', flavor: 'lb1-1-2', tags: { 'a b': 'c' }, listeners });
    expect(await faultsIn(text)).toEqual([]);
    const found = await resourcesOf(text);
    expect(found.map(({ type, label }) => `${type}.${label}`)).toEqual([
      'gcore_loadbalancerv2.web',
      'gcore_lblistener.web_2',
      'gcore_lbpool.a_pool',
      'gcore_lbmember._127_0_0_1',
    ]);
    expect(found[0]!.block.metadata_map).toEqual({ 'a b': 'c' });
    expect(found[1]!.block.loadbalancer_id).toBe('${gcore_loadbalancerv2.web.id}');
    expect(found[2]!.block).toMatchObject({ listener_id: '${gcore_lblistener.web_2.id}', project_id: 3, region_id: 4 });
    expect(found[3]!.block).toMatchObject({ pool_id: '${gcore_lbpool.a_pool.id}', weight: 2 });
  });

  it('writes the fields of schedules, subnets, secrets and file shares as the provider reads them', async () => {
    const one = async (operationId: string, body: JsonObject) => {
      const text = terraformOf(operationId, body);
      expect(await faultsIn(text)).toEqual([]);
      return (await resourcesOf(text))[0]!.block;
    };
    const interval = { type: 'interval', max_quantity: 2, hours: 3, retention_time: { days: 1 } };
    const cron = { type: 'cron', max_quantity: 1, minute: '0', timezone: 'UTC' };
    const policy = { name: 'a', action: 'volume_snapshot', schedules: [interval, cron], volume_ids: ['v'] };
    expect(await one('createLifecyclePolicy', policy)).toMatchObject({
      volume: [{ id: 'v' }],
      schedule: [
        { max_quantity: 2, interval: [{ hours: 3 }], retention_time: [{ days: 1 }] },
        { max_quantity: 1, cron: [{ minute: '0', timezone: 'UTC' }] },
      ],
    });
    const subnet = { name: 'a', cidr: '10.0.0.0/24', network_id: 'n', gateway_ip: null, ip_version: 4 };
    expect(await one('createSubnet', subnet)).toMatchObject({ gateway_ip: 'disable' });
    const payload = { certificate: 'a', certificate_chain: '', private_key: 'k' };
    const secret = { name: 'a', payload, expiration: '2030-01-01T02:00:00+02:00' };
    expect(await one('createSecret', secret)).toMatchObject({ certificate: 'a', expiration: '2030-01-01T00:00:00' });
    const share = { name: 'a', protocol: 'NFS', size: 1, access: [] };
    expect(await one('createFileShare', share)).not.toHaveProperty('access');
    expect(await one('createFileShare', { ...share, volume_type: 'vast_share_type' })).toMatchObject({
      type_name: 'vast',
    });
    expect(await one('createVolume', { name: 'a', source: 'snapshot', snapshot_id: 's' })).not.toHaveProperty('source');
  });

  it('writes the defaults of the API that the provider requires or has otherwise', async () => {
    const block = async (operationId: string, body: JsonObject) =>
      (await resourcesOf(terraformOf(operationId, body)))[0]!.block;
    const volume = { name: 'a', source: 'new-volume', size: 1 };
    expect(await block('createVolume', volume)).toMatchObject({ type_name: 'standard' });
    expect(await block('createVolume', { ...volume, type_name: 'cold' })).toMatchObject({ type_name: 'cold' });
    const common = {
      max_quantity: 2,
      resource_name_template: 'Snapshot of volume {volume_id} created by policy {lifecycle_policy_id}',
    };
    const schedules = [
      { type: 'interval', hours: 3 },
      { type: 'cron', month: '1' },
      { type: 'cron', day_of_week: 'mon' },
      { type: 'cron', day: '1', minute: '5' },
    ];
    expect((await block('createLifecyclePolicy', { name: 'a', schedules })).schedule).toMatchObject([
      { ...common, interval: [{ hours: 3 }] },
      { ...common, cron: [{ month: '1', day: '1', hour: '0' }] },
      { ...common, cron: [{ day_of_week: 'mon', hour: '0' }] },
      { ...common, cron: [{ day: '1', minute: '5' }] },
    ]);
  });

  it('keeps any text', async () => {
    for (const name of [
      `it's "quoted" \\ \${a} $\${b} %{if true} \\\${c} $ %`,
      'two\nlines\ttab',
      '😀 \u05e9\u05dc\u05d5\u05dd \u202ea',
    ]) {
      const text = terraformOf('createNetwork', { name, tags: { [name]: name } })!;
      expect(text).not.toContain('\u202e');
      const { block } = (await resourcesOf(text))[0]!;
      expect(withoutTemplates(block['name'])).toBe(name);
      expect(Object.values<string>(block['metadata_map']).map(withoutTemplates)).toEqual([name]);
    }
  });

  it('does not exist where the provider cannot express the request', () => {
    const member = { address: '127.0.0.1', protocol_port: 1 };
    for (const [operationId, body] of Object.entries<JsonObject>({
      createLbPoolMember: { ...member, backup: true },
      createListener: { name: 'a', protocol: 'TCP', protocol_port: 1, load_balancer_id: 'l', default_pool_id: 'p' },
      createNetwork: { name: 'a', tags: { a: '1' }, metadata: { b: '2' } },
      createRegistry: { name: 'a' },
      updateNetwork: { name: 'a' },
      createVolume: { name: 'a', source: 'new-volume', size: 1, lifecycle_policy_ids: [1] },
    })) {
      expect([operationId, terraformOf(operationId, body, { pool_id: 'p' })]).toEqual([operationId, null]);
    }
  });

  it('does not exist for values that the provider omits from its request', async () => {
    const listener = { name: 'a', protocol: 'TCP', protocol_port: 1 };
    const share = { name: 'a', protocol: 'NFS', size: 1, network: { network_id: 'n' } };
    for (const [operationId, body] of Object.entries<JsonObject>({
      // Nobody may connect; without the field, everyone may.
      createListener: { ...listener, load_balancer_id: 'l', allowed_cidrs: [] },
      createLoadBalancer: { name: 'a', listeners: [{ ...listener, allowed_cidrs: [] }] },
      // The settings of a standard share.
      createFileShare: { ...share, share_settings: { root_squash: true } },
    })) {
      expect([operationId, terraformOf(operationId, body)]).toEqual([operationId, null]);
    }
    const text = terraformOf('createFileShare', { ...share, share_settings: { root_squash: false } });
    expect((await resourcesOf(text))[0]!.block).not.toHaveProperty('share_settings');
  });

  it('writes the prefix length of addresses that may connect, which the provider requires', async () => {
    const allowed_cidrs = ['10.0.0.1', '10.0.0.0/24', '2001:db8::1'];
    const body = { name: 'a', protocol: 'TCP', protocol_port: 1, load_balancer_id: 'l', allowed_cidrs };
    const { block } = (await resourcesOf(terraformOf('createListener', body)))[0]!;
    expect(block.allowed_cidrs).toEqual(['10.0.0.1/32', '10.0.0.0/24', '2001:db8::1/128']);
  });
});
