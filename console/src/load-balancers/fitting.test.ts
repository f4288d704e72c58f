import { describe, expect, it } from 'vitest';
import { fittingListener, fittingPool } from './fitting.ts';

const monitor = { type: 'HTTP', delay: 10, url_path: '/health' };
const checked = { address: '10.0.0.1', monitor_address: '10.0.0.2', monitor_port: 81 };
const persistence = { type: 'SOURCE_IP', persistence_timeout: 60 };

describe('the fields of a request', () => {
  it.each([
    ['HTTP', { secret_id: 'a', insert_x_forwarded: true, user_list: [] }, { insert_x_forwarded: true, user_list: [] }],
    ['TERMINATED_HTTPS', { secret_id: 'a', user_list: [] }, { secret_id: 'a', user_list: [] }],
    ['TCP', { sni_secret_id: ['a'], user_list: [], default_pool_id: 'b' }, { default_pool_id: 'b' }],
    ['PROMETHEUS', { secret_id: 'a', default_pool_id: 'b' }, { secret_id: 'a' }],
  ])('of a listener are those of %s', (protocol, values, expected) => {
    expect(fittingListener({ protocol, ...values })).toEqual({ protocol, ...expected });
  });

  it.each([
    ['HTTPS', { ca_secret_id: 'a', session_persistence: { type: 'HTTP_COOKIE' } }, {}],
    ['HTTP', { healthmonitor: monitor }, {}],
    ['HTTP', { healthmonitor: { ...monitor, type: 'K8S' } }, {}],
    ['HTTP', { members: [checked], healthmonitor: monitor }, {}],
    ['HTTP', { members: [checked] }, { members: [{ address: '10.0.0.1' }] }],
    ['HTTP', { ca_secret_id: 'a' }, { ca_secret_id: undefined }],
    ['TCP', { healthmonitor: { ...monitor, type: 'TCP' } }, { healthmonitor: { type: 'TCP', delay: 10 } }],
    ['UDP', { session_persistence: persistence }, {}],
    ['TCP', { session_persistence: persistence }, { session_persistence: { type: 'SOURCE_IP' } }],
  ])('of a pool are those of %s: %o', (protocol, values, changes) => {
    const listener = fittingListener({ protocol: 'TCP', pools: [{ protocol, ...values }] });
    expect(fittingPool({ protocol, ...values })).toEqual({ protocol, ...values, ...changes });
    expect(listener['pools']).toEqual([{ protocol, ...values, ...changes }]);
  });
});
