/**
 * Invariant: the drivers can render every load balancer that the API accepts. Otherwise its task would fail, and every
 * later change of the load balancer with it.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { renderBalancer } from '../../drivers/haproxy/configuration.ts';
import { layoutOf } from '../../drivers/haproxy/layout.ts';
import { extractFiles } from '../../drivers/haproxy/specs.ts';
import { memberRules } from '../../drivers/haproxy/test-host.ts';
import { violationsOf } from '../../drivers/haproxy/validation.ts';
import { renderNginx } from '../../drivers/nginx/configuration.ts';
import { desiredLoadBalancer } from './desired.ts';
import { nestedErrors, newListener } from './listeners/nested-listeners.ts';
import { newListenerSettings } from './listeners/normalize.ts';
import type { NestedListener } from './listeners/schema.ts';
import { newMemberSettings } from './members/normalize.ts';
import { newMember } from './members/replacement.ts';
import { newPoolSettings } from './pools/normalize.ts';
import type { NestedPool } from './pools/schema.ts';

const id = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });
const timeout = maybe(fc.constantFrom(null, 0, 1, 86_400_000));
const secret = maybe(fc.constantFrom(null, id(901), id(902)));
const some = { requiredKeys: [] };

const member = fc.record({
  address: fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('::ffff:10.0.0.1', '10.0.0.1', '0.0.0.0', '::')),
  protocol_port: fc.integer({ min: 1, max: 65_535 }),
  weight: fc.integer({ min: 1, max: 256 }),
  backup: fc.boolean(),
  monitor_address: fc.option(fc.ipV4()),
  monitor_port: fc.option(fc.integer({ min: 1, max: 65_535 })),
});

const monitor = fc
  .record({
    type: fc.constantFrom('HTTP', 'HTTPS', 'K8S', 'PING', 'TCP', 'TLS-HELLO', 'UDP-CONNECT'),
    delay: fc.constantFrom(1, 5, 2_147_483_647),
    timeout: fc.constantFrom(1, 6, 2_147_483),
    max_retries: fc.integer({ min: 1, max: 10 }),
  })
  .chain((required) =>
    fc
      .record(
        {
          http_method: fc.constantFrom(null, 'GET', 'CONNECT'),
          http_version: fc.constantFrom(null, '1.0', '1.1'),
          url_path: fc.option(fc.string({ maxLength: 8 }).map((text) => `/${text.replaceAll(/[/?#%]/g, '')}`)),
          domain_name: fc.constantFrom(null, 'a.example', '_-_'),
          expected_codes: fc.oneof(
            fc.constantFrom(null, '200', '200,204', '200-299', '200,300-302', '599-100'),
            fc.string({ minLength: 1 }),
          ),
        },
        some,
      )
      .map((optional) => ({ ...required, ...optional })),
  );

const persistence = fc.record(
  {
    type: fc.constantFrom('APP_COOKIE', 'HTTP_COOKIE', 'SOURCE_IP'),
    cookie_name: fc.oneof(fc.constant(null), fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z 0-9._-]{1,61}[a-zA-Z0-9._]$/)),
    persistence_granularity: fc.oneof(
      fc.constantFrom(null, '255.255.255.0', '0.0.0.0', '24', 'ffff::'),
      fc.ipV4(),
      fc.string(),
    ),
    persistence_timeout: fc.constantFrom(null, 0, 1, 2_147_483),
  },
  { requiredKeys: ['type'] },
);

const pool = fc.record(
  {
    name: fc.constant('a pool'),
    protocol: fc.constantFrom('HTTP', 'HTTPS', 'PROXY', 'PROXYV2', 'TCP', 'UDP'),
    lb_algorithm: fc.constantFrom('LEAST_CONNECTIONS', 'ROUND_ROBIN', 'SOURCE_IP'),
    members: fc.array(member, { maxLength: 3 }),
    healthmonitor: fc.option(monitor),
    session_persistence: fc.option(persistence),
    ca_secret_id: secret,
    crl_secret_id: secret,
    secret_id: secret,
    timeout_client_data: timeout,
    timeout_member_data: timeout,
  },
  { requiredKeys: ['name', 'protocol', 'lb_algorithm'] },
) as fc.Arbitrary<unknown> as fc.Arbitrary<NestedPool>;

const hash = fc.oneof(
  fc.constantFrom('$6$rounds=5000$salt$', '$6$rounds=5001$s$', '$6$$').map((start) => start + 'a'.repeat(86)),
  fc.constantFrom('$2b$06$', '$2b$07$', '$2y$04$').map((start) => start + 'b'.repeat(53)),
  fc.string(),
);
const listener = fc.record(
  {
    name: fc.constant('a listener'),
    protocol: fc.constantFrom('HTTP', 'HTTPS', 'PROMETHEUS', 'TCP', 'TERMINATED_HTTPS', 'UDP'),
    protocol_port: fc.integer({ min: 1, max: 65_535 }),
    pools: fc.array(pool, { maxLength: 1 }),
    allowed_cidrs: fc.option(fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('10.0.0.0/08', '::/0')))),
    connection_limit: fc.constantFrom(-1, 0, 1_000_000),
    insert_x_forwarded: fc.boolean(),
    secret_id: fc.constantFrom('', id(903)),
    sni_secret_id: fc.array(fc.constant(id(904)), { maxLength: 1 }),
    user_list: fc.array(fc.record({ username: fc.constantFrom('alice', 'a b', 'bob'), encrypted_password: hash }), {
      maxLength: 3,
    }),
    timeout_client_data: timeout,
  },
  { requiredKeys: ['name', 'protocol', 'protocol_port'] },
) as fc.Arbitrary<unknown> as fc.Arbitrary<NestedListener>;

const placed = {
  loadBalancerId: id(1),
  projectId: 1,
  regionId: 1,
  creatorTaskId: id(2),
  createdAt: new Date(0),
};

/** Asserts that the drivers accept the listeners and render them without an exception. */
function expectRendered(listeners: NestedListener[]) {
  const whole = desired(listeners);
  expect(violationsOf(whole)).toEqual([]);
  const { spec } = extractFiles(whole);
  renderBalancer(spec, layout, 8_000);
  renderNginx({ state: layout.nginxState, streamModule: 'built in', sessions: 1_000 }, [spec], () => true);
}

const layout = layoutOf('/var/lib/cloudyard');

/** The desired state for these listeners. */
function desired(listeners: NestedListener[]) {
  const pools = listeners.map(({ pools: [body] = [] }, i) =>
    body
      ? { ...placed, ...newPoolSettings(body), id: id(100 + i), deletedAt: null, members: body.members ?? [] }
      : null,
  );
  const whole = {
    loadBalancer: { id: id(1), vipAddress: '127.64.0.1', adminStateUp: true },
    listeners: listeners.map((body, i) =>
      newListener({ ...placed, settings: newListenerSettings(body), defaultPoolId: pools[i]?.id ?? null }),
    ),
    l7Policies: [],
    l7Rules: [],
    pools: pools.filter((found) => found !== null),
    members: pools.flatMap(
      (found) => found?.members.map((body, n) => newMember(found, newMemberSettings(body), n)) ?? [],
    ),
  };
  const pems = new Map(Array.from({ length: 10 }, (_, n) => [id(900 + n), 'PEM']));
  return desiredLoadBalancer(whole as unknown as Parameters<typeof desiredLoadBalancer>[0], pems);
}

describe('accepted requests', () => {
  it('are valid for the drivers and can be rendered', () => {
    let accepted = 0;
    fc.assert(
      fc.property(fc.array(listener, { minLength: 1, maxLength: 2 }), (listeners) => {
        if (nestedErrors(listeners, 'ipv4', memberRules(1)).length > 0) return;
        accepted += 1;
        expectRendered(listeners);
      }),
      { numRuns: 20_000 },
    );
    expect(accepted).toBeGreaterThan(500);
  });

  it.each([1, 0, 2_147_483])('are rendered at the bounds: persistence for %i s', (seconds) => {
    const persistent = {
      name: 'a pool',
      protocol: 'UDP',
      lb_algorithm: 'ROUND_ROBIN',
      session_persistence: { type: 'SOURCE_IP', persistence_timeout: seconds, persistence_granularity: '255.128.0.0' },
      healthmonitor: {
        type: 'UDP-CONNECT',
        delay: 2_147_483_647,
        timeout: 2_147_483,
        max_retries: 10,
        max_retries_down: 10,
      },
      timeout_member_data: 86_400_000,
    };
    const listeners = [
      { name: 'a listener', protocol: 'UDP', protocol_port: 65_535, connection_limit: 1_000_000, pools: [persistent] },
    ] as NestedListener[];
    expect(nestedErrors(listeners, 'ipv4', memberRules(1))).toEqual([]);
    expectRendered(listeners);
  });

  it.each([
    ['TCP', 'HTTP'],
    ['TCP', 'HTTPS'],
    ['HTTP', 'PROXY'],
    ['TERMINATED_HTTPS', 'PROXYV2'],
  ])('include a %s listener with a %s pool', (protocol, poolProtocol) => {
    const pools = [{ name: 'a pool', protocol: poolProtocol, lb_algorithm: 'ROUND_ROBIN' }];
    const secret = protocol === 'TERMINATED_HTTPS' && { secret_id: id(903) };
    const listeners = [{ name: 'a listener', protocol, protocol_port: 1, ...secret, pools }] as NestedListener[];
    expect(nestedErrors(listeners, 'ipv4', memberRules(1))).toEqual([]);
    expectRendered(listeners);
  });
});
