/** The share of one tenant; attacks are in test/security/. */
import { describe, expect, it } from 'vitest';
import type { DesiredLoadBalancer, DesiredMonitor } from '../load-balancer.ts';
import { renderNginx } from '../nginx/configuration.ts';
import { renderBalancer } from './configuration.ts';
import { layoutOf } from './layout.ts';
import { listenerConnections, maxConnections } from './limits.ts';
import { intervalFactor } from './monitor-lines.ts';
import { extractFiles } from './specs.ts';
import { balancer, freeAddress, listener, member, monitor, pool } from './test-host.ts';

const layout = layoutOf('/data');
const rendered = (desired: DesiredLoadBalancer) => renderBalancer(extractFiles(desired).spec, layout, 8_000);

describe('connections', () => {
  it('fit the descriptors and the memory of the host', () => {
    expect(maxConnections()).toBeGreaterThanOrEqual(100);
    expect(maxConnections()).toBeLessThanOrEqual(100_000);
  });

  it.each<[number, number]>([
    [100_000, 4_000],
    [4_000, 4_000],
    [7, 7],
  ])('of a listener with limit %s are %i', (limit, most) => expect(listenerConnections(limit, 8_000)).toBe(most));

  it('are counted for the tenant in every frontend', () => {
    const protocols = ['HTTP', 'HTTPS', 'PROMETHEUS', 'TCP'] as const;
    const listeners = protocols.map((protocol, at) => listener({ protocol, port: 80 + at }));
    const { text } = rendered(balancer({}, {}, { tenant: '42', listeners, pools: [] }));
    expect(text.match(/track-sc0 str\(tenant_42\)/g)).toHaveLength(4);
    expect(text.match(/reject if \{ sc_conn_cur\(0\),add\(sess\.all\) gt 8000 \}/g)).toHaveLength(4);
  });

  it('are rejected for networks that are not allowed before they are counted', () => {
    const { text } = rendered(balancer({}, { allowedNetworks: ['10.0.0.0/8'] }));
    expect(text.indexOf('unless from_allowed_network')).toBeLessThan(text.indexOf('track-sc0'));
  });
});

describe('health checks', () => {
  const checked = (members: number, changes: Partial<DesiredMonitor> = {}) =>
    balancer({
      members: Array.from({ length: members }, (_, at) => member(1_000 + at)),
      monitor: monitor({ delay: 1_000, ...changes }),
    });

  it.each<[string, DesiredLoadBalancer, number]>([
    ['100 members a second', checked(100), 1],
    ['101 members a second', checked(101), 2],
    ['4,000 members a second', checked(4_000), 64],
    ['4,000 members a minute', checked(4_000, { delay: 60_000 }), 1],
    ['100 handshakes a second', checked(100, { type: 'TLS-HELLO' }), 16],
    ['pings, which the driver does', checked(4_000, { type: 'PING' }), 1],
    ['none', checked(0), 1],
    ['none that is enabled', checked(4_000, { enabled: false }), 1],
  ])('of %s', (_name, desired, stretch) => expect(intervalFactor(desired)).toBe(stretch));

  it('have longer intervals in the server lines', () => {
    expect(rendered(checked(100)).text).toContain(' inter 1000ms ');
    expect(rendered(checked(101)).text).toContain(' inter 2000ms ');
  });
});

it('the pools of a load balancer share the limit of sticky clients', () => {
  const persistence = { type: 'APP_COOKIE', cookieName: 'app', timeoutSeconds: null, granularity: null } as const;
  const pools = Array.from({ length: 50 }, () => pool({ persistence }));
  const sizes = [...rendered(balancer({}, {}, { listeners: [], pools })).text.matchAll(/ size (\d+) /g)];
  expect(sizes).toHaveLength(50);
  expect(sizes.reduce((sum, [, size]) => sum + Number(size), 0)).toBe(100_000);
});

describe('sessions of UDP', () => {
  const shareAmong = (tenants: number) => {
    const specs = Array.from({ length: tenants }, (_, at) =>
      balancer({ protocol: 'UDP' }, { protocol: 'UDP' }, { tenant: String(at), address: freeAddress() }),
    );
    const settings = { state: '/data', streamModule: 'built in', sessions: 6_400 };
    return Number(/limit_conn tenants (\d+);/.exec(renderNginx(settings, specs, () => true))?.[1]);
  };

  it.each([
    [1, 3_200],
    [3, 1_600],
    [31, 200],
    [100, 200],
  ])('of each of %i tenants are %i', (tenants, share) => expect(shareAmong(tenants)).toBe(share));
});
