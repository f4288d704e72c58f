/** Operating statuses and desired states are pure, so these tests need no database. */
import { describe, expect, it } from 'vitest';
import { type LoadBalancerReading, type MemberHealth, zeroCounters } from '../../drivers/load-balancer.ts';
import type { HealthMonitor } from './pools/schema.ts';
import { desiredLoadBalancer, secretsOf } from './desired.ts';
import { statusChanges } from './operating-status.ts';
import type { WholeLoadBalancer } from './store.ts';
import type { ListenerRow, LoadBalancerRow, MemberRow, PoolRow } from './table.ts';

const loadBalancer = { id: 'lb', vipAddress: '127.64.0.1', adminStateUp: true, operatingStatus: 'OFFLINE' };
const listenerOf = (id: string, changes: Partial<ListenerRow> = {}) =>
  ({
    id,
    protocol: 'HTTP',
    protocolPort: 80,
    connectionLimit: 100_000,
    allowedCidrs: null,
    insertXForwarded: false,
    secretId: null,
    sniSecretIds: [],
    userList: [],
    timeoutClientData: null,
    timeoutMemberConnect: null,
    timeoutMemberData: null,
    defaultPoolId: null,
    l7Policies: [],
    adminStateUp: true,
    operatingStatus: 'OFFLINE',
    deletedAt: null,
    ...changes,
  }) as ListenerRow;
const poolOf = (id: string, changes: Partial<PoolRow> = {}) =>
  ({
    id,
    protocol: 'HTTP',
    lbAlgorithm: 'ROUND_ROBIN',
    adminStateUp: true,
    caSecretId: null,
    crlSecretId: null,
    secretId: null,
    healthMonitor: null,
    sessionPersistence: null,
    timeoutClientData: null,
    timeoutMemberConnect: null,
    timeoutMemberData: null,
    operatingStatus: 'OFFLINE',
    deletedAt: null,
    ...changes,
  }) as PoolRow;
const memberOf = (id: string, poolId: string, changes: Partial<MemberRow> = {}) =>
  ({
    id,
    poolId,
    address: '10.0.0.1',
    protocolPort: 80,
    weight: 1,
    backup: false,
    adminStateUp: true,
    monitorAddress: null,
    monitorPort: null,
    operatingStatus: 'OFFLINE',
    ...changes,
  }) as MemberRow;

interface Parts {
  loadBalancer?: Partial<LoadBalancerRow>;
  listeners?: ListenerRow[];
  pools?: PoolRow[];
  members?: MemberRow[];
}
const whole = (parts: Parts): WholeLoadBalancer => ({
  listeners: [],
  pools: [],
  members: [],
  l7Policies: [],
  l7Rules: [],
  ...parts,
  loadBalancer: { ...loadBalancer, ...parts.loadBalancer } as LoadBalancerRow,
});
const reading = (members: Record<string, MemberHealth>, listeners: string[]): LoadBalancerReading => ({
  id: 'lb',
  members: new Map(Object.entries(members)),
  listeners: new Map(listeners.map((id) => [id, zeroCounters])),
});

/** All statuses after the changes are written. */
function statuses(given: WholeLoadBalancer, seen: LoadBalancerReading | undefined) {
  const rows = [given.loadBalancer, ...given.listeners, ...given.pools, ...given.members];
  return Object.fromEntries([
    ...rows.map((row) => [row.id, row.operatingStatus]),
    ...statusChanges(given, seen).map(({ id, status }) => [id, status]),
  ]);
}

describe('operating statuses', () => {
  const served = (health: Record<string, MemberHealth>, changes: Parts = {}) =>
    statuses(
      whole({
        listeners: [listenerOf('listener', { defaultPoolId: 'pool' })],
        pools: [poolOf('pool')],
        members: [memberOf('a', 'pool'), memberOf('b', 'pool')],
        ...changes,
      }),
      reading(health, ['listener']),
    );

  const cases: [MemberHealth, MemberHealth, string, string, string][] = [
    ['UP', 'UP', 'ONLINE', 'ONLINE', 'ONLINE'],
    ['UP', 'DOWN', 'DEGRADED', 'DEGRADED', 'DEGRADED'],
    ['DOWN', 'DOWN', 'ERROR', 'ERROR', 'ERROR'],
    ['UNCHECKED', 'UNCHECKED', 'NO_MONITOR', 'ONLINE', 'ONLINE'],
    ['UP', 'DRAIN', 'ONLINE', 'ONLINE', 'ONLINE'],
    ['DRAIN', 'DRAIN', 'DRAINING', 'ONLINE', 'ONLINE'],
    ['UP', 'MAINT', 'ONLINE', 'ONLINE', 'ONLINE'],
    ['DOWN', 'MAINT', 'ERROR', 'ERROR', 'ERROR'],
    ['MAINT', 'MAINT', 'OFFLINE', 'OFFLINE', 'OFFLINE'],
  ];
  it.each(cases)('members %s and %s make a pool %s, a listener %s, a load balancer %s', (a, b, pool, listener, lb) => {
    expect(served({ a, b })).toMatchObject({ pool, listener, lb });
  });

  it('stay as they are until the host had the load balancer, or the member', () => {
    const parts = {
      listeners: [listenerOf('listener', { defaultPoolId: 'pool' })],
      pools: [poolOf('pool')],
      members: [memberOf('a', 'pool', { operatingStatus: 'NO_MONITOR' })],
    };
    const at = (generation: number, observedGeneration: number) =>
      whole({ loadBalancer: { generation, observedGeneration }, ...parts });
    expect(statuses(at(1, 0), undefined)).toMatchObject({ a: 'NO_MONITOR', lb: 'OFFLINE' });
    expect(statuses(at(2, 1), reading({}, ['listener']))).toMatchObject({ a: 'NO_MONITOR' });
    expect(statuses(at(1, 1), reading({}, ['listener']))).toMatchObject({ a: 'OFFLINE' });
    expect(statuses(at(2, 1), undefined)).toMatchObject({ a: 'OFFLINE', lb: 'OFFLINE' });
  });

  it('do not change without a new reading', () => {
    const given = whole({
      loadBalancer: { operatingStatus: 'ONLINE' },
      listeners: [listenerOf('listener', { defaultPoolId: 'pool', operatingStatus: 'ONLINE' })],
      pools: [poolOf('pool', { operatingStatus: 'ONLINE' })],
      members: [memberOf('a', 'pool', { operatingStatus: 'ONLINE' })],
    });
    expect(statusChanges(given, reading({ a: 'UP' }, ['listener']))).toEqual([]);
  });

  it('an empty load balancer, pool or listener is ONLINE', () => {
    expect(statuses(whole({}), reading({}, []))).toEqual({ lb: 'ONLINE' });
    const empty = whole({ listeners: [listenerOf('listener')], pools: [poolOf('pool')] });
    expect(statuses(empty, reading({}, ['listener']))).toEqual({ lb: 'ONLINE', listener: 'ONLINE', pool: 'ONLINE' });
  });

  it('disabled parts, and parts that are not on the host, are OFFLINE', () => {
    const off = { lb: 'OFFLINE', listener: 'OFFLINE', pool: 'OFFLINE', a: 'OFFLINE', b: 'OFFLINE' };
    expect(served({ a: 'UP', b: 'UP' }, { loadBalancer: { adminStateUp: false } })).toEqual(off);
    const given = whole({ listeners: [listenerOf('listener')], loadBalancer: { operatingStatus: 'ONLINE' } });
    expect(statuses(given, undefined)).toEqual({ lb: 'OFFLINE', listener: 'OFFLINE' });
    expect(statuses(given, reading({}, []))).toEqual({ lb: 'OFFLINE', listener: 'OFFLINE' });
    const member = memberOf('a', 'pool', { adminStateUp: false });
    expect(served({ a: 'UP', b: 'UP' }, { members: [member, memberOf('b', 'pool')] })).toMatchObject({
      a: 'OFFLINE',
      b: 'ONLINE',
      pool: 'ONLINE',
    });
  });
});

describe('the desired state', () => {
  it('omits deleted parts', () => {
    const deletedAt = new Date();
    const desired = desiredLoadBalancer(
      whole({
        listeners: [listenerOf('deleted', { deletedAt }), listenerOf('kept', { defaultPoolId: 'deleted pool' })],
        pools: [poolOf('deleted pool', { deletedAt }), poolOf('kept pool')],
        members: [memberOf('a', 'kept pool'), memberOf('b', 'deleted pool')],
      }),
      new Map(),
    );
    expect(desired.listeners.map(({ id, defaultPoolId }) => [id, defaultPoolId])).toEqual([['kept', null]]);
    expect(desired.pools.map(({ id, members }) => [id, members.map((member) => member.id)])).toEqual([
      ['kept pool', ['a']],
    ]);
  });

  it('has times in milliseconds, null for no limit and timeout 0, and HTTP for K8S monitors', () => {
    const monitor = { type: 'K8S', admin_state_up: true, delay: 5, timeout: 3, max_retries: 2, max_retries_down: 3 };
    const desired = desiredLoadBalancer(
      whole({
        listeners: [listenerOf('listener', { timeoutClientData: 0, timeoutMemberData: 7000 })],
        pools: [poolOf('pool', { healthMonitor: monitor as HealthMonitor })],
      }),
      new Map(),
    );
    expect(desired.listeners[0]).toMatchObject({
      timeoutClientData: null,
      timeoutMemberData: 7000,
    });
    expect(desired.pools[0]!.monitor).toMatchObject({ type: 'HTTP', delay: 5000, timeout: 3000, maxRetries: 2 });
  });

  it('contains the PEM texts of secrets', () => {
    const given = whole({
      listeners: [listenerOf('listener', { secretId: 'one', sniSecretIds: ['one', 'two'] })],
      pools: [poolOf('pool', { secretId: 'three', caSecretId: 'ca', crlSecretId: 'crl' })],
    });
    const ids = secretsOf(given);
    expect([...ids].sort()).toEqual(['ca', 'crl', 'one', 'three', 'two']);
    const desired = desiredLoadBalancer(given, new Map(ids.map((id) => [id, `pem of ${id}`])));
    expect(desired.listeners[0]).toMatchObject({
      certificate: { id: 'one', pem: 'pem of one' },
      sniCertificates: [{ id: 'one' }, { id: 'two', pem: 'pem of two' }],
    });
    expect(desired.pools[0]).toMatchObject({
      caBundle: 'pem of ca',
      revocationList: 'pem of crl',
      clientCertificate: { id: 'three' },
    });
  });
});
