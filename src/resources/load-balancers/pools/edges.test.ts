/** Values at the bounds are stored unchanged, and pools must be compatible with their listeners. */
import { beforeAll, describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { builders, member, monitor, paths, pools, unknownId, v2 } from '../test-balancers.ts';

const cloud = useCloudyard();
const { aBalancer, aListener, aPool, getPool } = builders(cloud);
const valid = { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' };
const members = (...list: object[]) => ({ members: list });
const withMonitor = (more: object = {}) => ({ healthmonitor: monitor(more) });
const persistence = (session_persistence: object) => ({ session_persistence });

let balancer: string;
beforeAll(async () => {
  balancer = await aBalancer();
});

describe('values at the bounds are accepted:', () => {
  it.each<[string, object]>([
    ['names', { name: 'a.b' }],
    ['long names', { name: 'a'.repeat(63) }],
    ['timeouts', { timeout_client_data: 86_400_000, timeout_member_connect: 0, timeout_member_data: 1 }],
    [
      'weights and ports',
      members(member(1, { weight: 256, protocol_port: 65_535 }), member(2, { weight: 1, protocol_port: 1 })),
    ],
    [
      'monitors of members',
      members(member(1, { monitor_port: 65_535, monitor_address: '::1' }), member(2, { monitor_port: 1 })),
    ],
    ['one address on two ports', members(member(1), member(1, { protocol_port: 81 }))],
    ['a long wait', withMonitor({ delay: 2_147_483_647, timeout: 2_147_483, max_retries: 10, max_retries_down: 1 })],
    ['a timeout just below the delay', withMonitor({ delay: 2, timeout: 1 })],
    ['statuses and ranges', withMonitor({ type: 'HTTP', expected_codes: '200,202,300-302,401,403,404,500-504' })],
    [
      'HTTP fields of an HTTPS monitor',
      withMonitor({ type: 'HTTPS', url_path: '/a;b"c', expected_codes: '100,599', http_method: 'TRACE' }),
    ],
    [
      'a range of one',
      withMonitor({ type: 'K8S', expected_codes: '200-200', http_version: '1.0', domain_name: 'a_b.example' }),
    ],
    ['a TLS hello', withMonitor({ type: 'TLS-HELLO', http_method: null, url_path: null })],
    [
      'persistence by source address',
      {
        protocol: 'UDP',
        ...persistence({
          type: 'SOURCE_IP',
          persistence_timeout: 2_147_483,
          persistence_granularity: '255.255.255.255',
        }),
      },
    ],
    ['cookies of the proxy', persistence({ type: 'HTTP_COOKIE', cookie_name: null, persistence_timeout: null })],
    ['a named cookie of the proxy', persistence({ type: 'HTTP_COOKIE', cookie_name: 'sticky' })],
    [
      'cookies to members over TLS',
      { protocol: 'HTTPS', ...persistence({ type: 'APP_COOKIE', cookie_name: 'JSESSIONID' }) },
    ],
    ['UDP', { protocol: 'UDP', ...withMonitor({ type: 'UDP-CONNECT' }) }],
    ['UDP with a PING monitor', { protocol: 'UDP', ...withMonitor({ type: 'PING' }) }],
  ])('%s', async (_name, body) => {
    const created = await getPool(await aPool({ load_balancer_id: balancer, ...body }));
    expect(created).toMatchObject(body);
    const plain = await aPool({ load_balancer_id: balancer });
    await cloud.ended(await cloud.patch(v2(`${pools}/${plain}`), body));
    expect(await getPool(plain)).toMatchObject(body);
  });

  it('a persistence timeout of 0 s, stored as null', async () => {
    const body = persistence({ type: 'HTTP_COOKIE', persistence_timeout: 0 });
    const id = await aPool({ load_balancer_id: balancer, ...body });
    expect((await getPool(id))['session_persistence']).toMatchObject({ persistence_timeout: null });
    expect((await cloud.patch(v2(`${pools}/${id}`), body)).body).toEqual({ tasks: [] });
  });

  it('backups of UDP pools that do not balance by address', async () => {
    const body = { protocol: 'UDP', members: [member(1), member(2, { backup: true })] };
    const id = await aPool({ load_balancer_id: balancer, ...body });
    const refused = await cloud.patch(v2(`${pools}/${id}`), { lb_algorithm: 'SOURCE_IP' });
    expect([refused.status, paths(refused)]).toEqual([400, ['members.1.backup']]);
    await cloud.ended(await cloud.patch(v2(`${pools}/${id}`), { lb_algorithm: 'SOURCE_IP', members: [member(1)] }));
    const alone = await cloud.post(`${pools}/${id}/member`, member(2, { backup: true }));
    expect([alone.status, paths(alone)]).toEqual([400, ['backup']]);
  });

  it('a subnet of the project', async () => {
    const { body } = await cloud.get('/cloud/v1/subnets/1/1');
    const list = [member(1, { subnet_id: body.results[0].id.toUpperCase() })];
    const id = await aPool({ load_balancer_id: balancer, members: list });
    expect((await getPool(id))['members'][0].subnet_id).toBe(body.results[0].id);
  });
});

describe('pools and listeners must be compatible:', () => {
  const protocols = ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP', 'UDP'];
  const fitting: Record<string, string[]> = {
    HTTP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2'],
    HTTPS: ['HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
    PROMETHEUS: [],
    TCP: ['HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP'],
    UDP: ['UDP'],
  };

  it.each(Object.keys(fitting))('%s', async (protocol) => {
    for (const pool of protocols) {
      const listener = await aListener(balancer, { protocol });
      const body = { ...valid, protocol: pool, listener_id: listener };
      const answer = await cloud.post(pools, body);
      const fits = fitting[protocol]!.includes(pool);
      expect([pool, answer.status, fits ? [] : paths(answer)]).toEqual([
        pool,
        fits ? 200 : 400,
        fits ? [] : ['protocol'],
      ]);
      if (!fits) continue;
      const task = await cloud.ended(answer);
      const path = v2(`${pools}/${task.body.created_resources.pools[0]}`);
      for (const other of protocols.filter((candidate) => !fitting[protocol]!.includes(candidate))) {
        expect(paths(await cloud.patch(path, { protocol: other }))).toContain('protocol');
      }
    }
  });

  it.each(['HTTPS', 'TCP'])(
    'behind %s listeners, which pass traffic through, cookies and TLS secrets are rejected',
    async (protocol) => {
      const listener = await aListener(balancer, { protocol });
      const body = { ...valid, protocol: 'HTTPS', listener_id: listener };
      const cookies = await cloud.post(pools, {
        ...body,
        ...persistence({ type: 'HTTP_COOKIE' }),
        ca_secret_id: unknownId,
      });
      expect([cookies.status, paths(cookies).sort()]).toEqual([
        400,
        ['ca_secret_id', 'ca_secret_id', 'session_persistence.type'],
      ]);
    },
  );

  it('and must belong to the same load balancer', async () => {
    const other = await aBalancer();
    const listener = await aListener(other);
    const answer = await cloud.post(pools, { ...valid, listener_id: listener, load_balancer_id: balancer });
    expect([answer.status, paths(answer)]).toEqual([400, ['listener_id']]);
    expect(answer.body.message).toContain(other);
  });
});
