import { describe, expect, it } from 'vitest';
import { balancer, listener, member, monitor, pool, withListener, withPool } from './haproxy/test-host.ts';
import { violationsOf } from './haproxy/validation.ts';
import type { DesiredListener, DesiredLoadBalancer } from './load-balancer.ts';

const valid = balancer({ members: [member(1)] });
const certificate = { id: valid.id, pem: 'pem' };
const cookie = { type: 'HTTP_COOKIE', cookieName: null, timeoutSeconds: null, granularity: null } as const;
const sourceIp = { ...cookie, type: 'SOURCE_IP' } as const;
const user = { name: 'u', encryptedPassword: `$5$abc$${'d'.repeat(43)}` };
const udp = balancer({ protocol: 'UDP', algorithm: 'SOURCE_IP' }, { protocol: 'UDP' });

const metrics = (changes: Partial<DesiredListener>) => ({
  ...valid,
  listeners: [...valid.listeners, listener({ protocol: 'PROMETHEUS', port: 9101, ...changes })],
});

describe('violations', () => {
  it.each<[string, DesiredLoadBalancer]>([
    ['a valid load balancer', valid],
    ['metrics', metrics({})],
    ['metrics with TLS and users', metrics({ certificate, sniCertificates: [certificate], users: [user] })],
    [
      'statuses and ranges',
      withPool(valid, { monitor: monitor({ type: 'HTTP', expectedCodes: '200,202,300-302,500-504' }) }),
    ],
    [
      'a netmask and a timeout of a UDP pool',
      withPool(udp, { persistence: { ...sourceIp, granularity: '255.255.240.0', timeoutSeconds: 60 } }),
    ],
  ])('are empty for %s', (_, desired) => expect(violationsOf(desired)).toEqual([]));

  it.each<[string, DesiredLoadBalancer, RegExp]>([
    [
      'an HTTP pool behind an HTTPS listener',
      balancer({}, { protocol: 'HTTPS' }),
      /protocol: must be HTTPS, PROXY, PROXYV2 or TCP behind HTTPS listeners/,
    ],
    ['a pool of a PROMETHEUS listener', balancer({}, { protocol: 'PROMETHEUS' }), /PROMETHEUS listeners cannot have a/],
    ['an unknown pool', withListener(valid, { defaultPoolId: valid.id }), /default_pool_id: pool .* not found/],
    ['port 0', withListener(valid, { port: 0 }), /protocol_port: must be between 1 and 65535/],
    [
      'two listeners on one port',
      { ...valid, listeners: [...valid.listeners, listener()] },
      /listeners.1.protocol_port: conflicts with listeners.0: both use port 80/,
    ],
    ['a missing certificate', withListener(valid, { protocol: 'TERMINATED_HTTPS' }), /secret_id: is required for TERM/],
    [
      'a certificate of an HTTP listener',
      withListener(valid, { certificate }),
      /secret_id: is only supported for TERM/,
    ],
    [
      'forwarding headers of a TCP listener',
      withListener(valid, { protocol: 'TCP', insertXForwarded: true }),
      /insert_x_forwarded: is only supported for HTTP and TERMINATED_HTTPS/,
    ],
    [
      'users of a TCP listener',
      withListener(valid, { protocol: 'TCP', users: [user] }),
      /user_list: is only supported for HTTP, TERMINATED_HTTPS and PROMETHEUS/,
    ],
    ['a duplicate user', withListener(valid, { users: [user, user] }), /user_list.1.username: duplicates user_list.0/],
    [
      'an expensive hash',
      withListener(valid, { users: [{ ...user, encryptedPassword: '$6$rounds=999999$a$b' }] }),
      /encrypted_password: must have at most 5000 rounds/,
    ],
    [
      'an invalid network',
      withListener(valid, { allowedNetworks: ['1.2.3.4/33'] }),
      /allowed_cidrs.0: must be a network/,
    ],
    [
      'a duplicate member',
      withPool(valid, { members: [member(1), member(1)] }),
      /members.1: has the same address and port as members\.0/,
    ],
    ['weight 257', withPool(valid, { members: [member(1, { weight: 257 })] }), /weight: must be between 0 and 256/],
    [
      'an invalid address',
      withPool(valid, { members: [member(1, { address: 'x' })] }),
      /members.0.address: must be an IP address/,
    ],
    [
      'a backup member behind a source hash',
      withPool(udp, { members: [member(1, { backup: true })] }),
      /members.0.backup: backup members are not supported in a UDP pool balanced by SOURCE_IP/,
    ],
    [
      'cookies of a TCP pool',
      balancer({ protocol: 'TCP', persistence: cookie }, { protocol: 'TCP' }),
      /session_persistence.type: HTTP_COOKIE requires an HTTP or HTTPS pool/,
    ],
    [
      'cookies behind a TCP listener',
      balancer({ protocol: 'HTTP', persistence: cookie }, { protocol: 'TCP' }),
      /session_persistence.type: HTTP_COOKIE is not supported behind TCP listeners/,
    ],
    [
      'a name for SOURCE_IP',
      withPool(valid, { persistence: { ...cookie, type: 'SOURCE_IP', cookieName: 'x' } }),
      /cookie_name: is only supported for APP_COOKIE and HTTP_COOKIE/,
    ],
    [
      'APP_COOKIE without a name',
      withPool(valid, { persistence: { ...cookie, type: 'APP_COOKIE' } }),
      /cookie_name: is required for APP_COOKIE/,
    ],
    [
      'an invalid netmask',
      withPool(udp, { persistence: { ...sourceIp, granularity: '255.0.255.0' } }),
      /persistence_granularity: must be a netmask/,
    ],
    [
      'a netmask and a timeout of an HTTP pool',
      withPool(valid, { persistence: { ...sourceIp, granularity: '255.255.0.0', timeoutSeconds: 60 } }),
      /persistence_timeout: is only supported for SOURCE_IP in UDP pools; .*persistence_granularity: is only supported/,
    ],
    [
      'names of metrics without a certificate',
      metrics({ sniCertificates: [certificate] }),
      /sni_secret_id: requires secret_id/,
    ],
    [
      'forwarding headers of metrics',
      metrics({ insertXForwarded: true }),
      /insert_x_forwarded: is only supported for HTTP and TERMINATED_HTTPS/,
    ],
    ['TLS secrets of an HTTP pool', withPool(valid, { caBundle: 'x' }), /ca_secret_id: is only supported for HTTPS/],
    [
      'TLS secrets behind an HTTPS listener',
      balancer({ protocol: 'HTTPS', caBundle: 'x' }, { protocol: 'HTTPS' }),
      /ca_secret_id: is not supported behind HTTPS listeners, which pass TLS through/,
    ],
    [
      'a revocation list without a CA bundle',
      withPool(valid, { protocol: 'HTTPS', revocationList: 'x' }),
      /crl_secret_id: requires ca_secret_id/,
    ],
    [
      'a UDP-CONNECT monitor of an HTTP pool',
      withPool(valid, { monitor: monitor({ type: 'UDP-CONNECT' }) }),
      /healthmonitor.type: UDP-CONNECT requires a UDP pool/,
    ],
    [
      'an HTTP monitor of a UDP pool',
      balancer({ protocol: 'UDP', monitor: monitor({ type: 'HTTP' }) }, { protocol: 'UDP' }),
      /healthmonitor.type: must be UDP-CONNECT or PING/,
    ],
    [
      'a path of a TCP monitor',
      withPool(valid, { monitor: monitor({ urlPath: '/x' }) }),
      /url_path: is only supported for monitors of type HTTP and HTTPS/,
    ],
    [
      'invalid status codes',
      withPool(valid, { monitor: monitor({ type: 'HTTP', expectedCodes: '2xx' }) }),
      /expected_codes: must be HTTP statuses/,
    ],
    [
      'a descending range of status codes',
      withPool(valid, { monitor: monitor({ type: 'HTTP', expectedCodes: '200,299-201' }) }),
      /expected_codes: must be HTTP statuses/,
    ],
    [
      'a pool that balances requests and bytes',
      {
        ...valid,
        listeners: [...valid.listeners, listener({ protocol: 'TCP', port: 81, defaultPoolId: valid.pools[0]!.id })],
      },
      /must not be used by listeners that balance requests and by listeners that balance bytes/,
    ],
    [
      'only that the protocol of a pool does not fit',
      {
        ...udp,
        listeners: [...udp.listeners, listener({ protocol: 'TCP', port: 81, defaultPoolId: udp.pools[0]!.id })],
      },
      /^pool \S+: protocol: must be HTTP, HTTPS, PROXY, PROXYV2 or TCP behind TCP listeners$/,
    ],
    ['a duplicate id', { ...valid, pools: [...valid.pools, pool({ id: valid.id })] }, /every id must be unique/],
  ])('report %s', (_, desired, message) => expect(violationsOf(desired).join('; ')).toMatch(message));

  it('report what the programs of the host do not support', () => {
    expect(violationsOf(udp)).toEqual([]);
    expect(violationsOf(udp, { udp: false, ping: true }).join()).toMatch(/UDP is not available in this region/);
    const ping = withPool(valid, { monitor: monitor({ type: 'PING' }) });
    expect(violationsOf(ping, { udp: true, ping: false }).join()).toMatch(/PING is not available in this region/);
  });
});
