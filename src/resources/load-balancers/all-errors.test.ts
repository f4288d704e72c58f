/** One answer names the invalid fields of the schema together with those that break a rule of the request alone. */
import { beforeAll, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../../test/harness.ts';
import { balancers, builders, listeners, member, paths, pools, unknownId, v2 } from './test-balancers.ts';

const cloud = useCloudyard({ audit: false });
const { aBalancer, aListener, aPool, created } = builders(cloud);
let listener: string;
let pool: string;
let rule: string;

beforeAll(async () => {
  const balancer = await aBalancer();
  listener = await aListener(balancer);
  pool = await aPool({ load_balancer_id: balancer });
  const policy = { action: 'REJECT', listener_id: listener };
  const rules = `/cloud/v1/l7policies/1/1/${await created(await cloud.post('/cloud/v1/l7policies/1/1', policy), 'l7polices')}/rules`;
  const anyPath = { type: 'PATH', compare_type: 'EQUAL_TO', value: '/x' };
  rule = `${rules}/${await created(await cloud.post(rules, anyPath), 'l7rules')}`;
});

const denied = { address: '169.254.169.254', protocol_port: 80 };
const aTcpPool = { name: 'a pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN' };
const user = { username: 'bob', encrypted_password: 'plain' };
const cases: [title: string, send: () => Promise<Answer>, fields: string[]][] = [
  [
    'the update of a listener',
    () => cloud.patch(`${v2(listeners)}/${listener}`, { connection_limit: -2, user_list: [user, user] }),
    ['connection_limit', 'user_list.0.encrypted_password', 'user_list.1.encrypted_password', 'user_list.1.username'],
  ],
  [
    'the members in the update of a pool',
    () => cloud.patch(`${v2(pools)}/${pool}`, { name: 'x', members: [member(1), member(1)] }),
    ['members.1', 'name'],
  ],
  [
    'the session persistence in the update of a pool',
    () => cloud.patch(`${v2(pools)}/${pool}`, { name: 'x', session_persistence: { type: 'APP_COOKIE' } }),
    ['name', 'session_persistence.cookie_name'],
  ],
  [
    'the health monitor in the update of a pool, of the type that it has',
    () => cloud.patch(`${v2(pools)}/${pool}`, { name: 'x', healthmonitor: { delay: 5, timeout: 9, max_retries: 1 } }),
    ['healthmonitor.timeout', 'name'],
  ],
  [
    'the update of a pool, but not what other protocols forbid',
    () =>
      cloud.patch(`${v2(pools)}/${pool}`, {
        name: 'x',
        session_persistence: { type: 'SOURCE_IP', persistence_timeout: 60 },
        members: [member(1, { backup: true })],
      }),
    ['name'],
  ],
  [
    'the update of a health monitor',
    () => cloud.patch(`${pools}/${pool}/healthmonitor`, { max_retries: 0, expected_codes: 'abc' }),
    ['expected_codes', 'max_retries'],
  ],
  [
    'a pool of an unknown protocol',
    () =>
      cloud.post(pools, {
        name: 'a pool',
        protocol: 'FTP',
        lb_algorithm: 'ROUND_ROBIN',
        healthmonitor: { type: 'TCP', delay: 5, timeout: 5, max_retries: 1 },
        session_persistence: { type: 'APP_COOKIE' },
        members: [member(1), denied],
      }),
    ['healthmonitor.timeout', 'load_balancer_id', 'members.1.address', 'protocol', 'session_persistence.cookie_name'],
  ],
  [
    'a listener of an unknown protocol',
    () => cloud.post(listeners, { name: 'a listener', protocol: 'FTP', protocol_port: 80, user_list: [user] }),
    ['load_balancer_id', 'protocol', 'user_list.0.encrypted_password'],
  ],
  ['a new member', () => cloud.post(`${pools}/${pool}/member`, { ...denied, weight: 0 }), ['address', 'weight']],
  [
    'members next to one without a valid address',
    () => cloud.request('PUT', `${balancers}/pools/${pool}/members`, [{ ...member(1), address: 'x' }, denied]),
    ['0.address', '1.address'],
  ],
  [
    'a new list of members',
    () => cloud.request('PUT', `${balancers}/pools/${pool}/members`, [member(1), member(1), { ...denied, weight: 0 }]),
    ['1', '2.address', '2.weight'],
  ],
  [
    'the update of an L7 rule',
    () => cloud.request('PUT', rule, { zzz: 1, type: 'PATH', compare_type: 'REGEX', value: '(a+)+' }),
    ['value', 'zzz'],
  ],
  [
    'the update of an L7 rule without its type',
    () => cloud.request('PUT', rule, { zzz: 1, compare_type: 'REGEX', value: '(a+)+' }),
    ['value', 'zzz'],
  ],
  [
    'the update of an L7 rule, whose key may be that which it has',
    () => cloud.request('PUT', rule, { zzz: 1, type: 'HEADER', compare_type: 'EQUAL_TO', value: 'x' }),
    ['zzz'],
  ],
  [
    'a load balancer with a short name',
    () =>
      cloud.post(balancers, {
        name: 'x',
        flavor: 'nope',
        floating_ip: { source: 'new' },
        listeners: [
          { name: 'a listener', protocol: 'TCP', protocol_port: 80, pools: [{ ...aTcpPool, members: [denied] }] },
          { name: 'same port', protocol: 'HTTP', protocol_port: 80 },
          { name: 'no protocol', protocol_port: 80 },
        ],
        tags: { 'cloudyard:a': 'b' },
      }),
    [
      'flavor',
      'floating_ip',
      'listeners.0.pools.0.members.0.address',
      'listeners.1.protocol_port',
      'listeners.2.protocol',
      'name',
      'tags.cloudyard:a',
    ],
  ],
  [
    'a load balancer with unknown references',
    () =>
      cloud.post(balancers, {
        name: 'a balancer',
        flavor: 'nope',
        floating_ip: { source: 'new' },
        vip_port_id: unknownId,
        vip_network_id: unknownId,
        metadata: { 'cloudyard:a': 'b' },
      }),
    ['flavor', 'floating_ip', 'metadata.cloudyard:a', 'vip_network_id', 'vip_port_id'],
  ],
];

it.each(cases)('%s', async (_title, send, fields) => {
  const answer = await send();
  expect({ status: answer.status, fields: paths(answer).sort() }).toEqual({ status: 400, fields });
});

it('members of another list are named by their place in the body', async () => {
  const put = async (list: object[]) => paths(await cloud.request('PUT', `${balancers}/pools/${pool}/members`, list));
  expect(await put([member(1), member(1)])).toEqual(['1']);
  expect(await put([member(1, { subnet_id: unknownId })])).toEqual(['0.subnet_id']);
});
