/** The pure parts: rendering, server differences, detection, readings. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import type { DesiredLoadBalancer } from '../load-balancer.ts';
import { type GlobalSettings, renderBalancer, renderGlobal } from './configuration.ts';
import { findHaproxy, type HostFacts } from './detect.ts';
import { exposition } from './exporter.ts';
import { layoutOf } from './layout.ts';
import type { HaproxyProcess } from './process.ts';
import { createTrafficCounters, parseCounters } from './readings.ts';
import { linesOf } from './runtime-socket.ts';
import { difference, type ObservedServer, type RenderedPool } from './servers.ts';
import { extractFiles, type Spec } from './specs.ts';
import { balancer, member, monitor, withListener, withPool } from './test-host.ts';

const MIB = 1024 ** 2;
const layout = layoutOf('/data');
const render = (desired: DesiredLoadBalancer) => renderBalancer(extractFiles(desired).spec, layout, 8_000);
const certificate = { id: 'one', pem: 'PEM' };
const sourceIp = { type: 'SOURCE_IP', cookieName: null, timeoutSeconds: null, granularity: null } as const;

describe('sessions of several hosts', () => {
  it.each([
    ['10.77.0.11', '10.77.0.12', '10.77.0.13'],
    ['fd00:77::11', 'fd00:77::12', 'fd00:77::13'],
  ])('are accepted from and given to the addresses of the hosts only: %s', (address, ...others) => {
    const peers = {
      self: { name: 'h1', address },
      others: others.map((each, at) => ({ name: `h${at + 2}`, address: each })),
    };
    const settings: GlobalSettings = {
      ...{ unprivileged: false, maxConnections: 8_000, hardStopSeconds: 30, oldWorkers: 3, peers },
    };
    const text = renderGlobal(settings, layout, '1', 'structure');
    expect(text).toContain(`acl from_allowed_network src ${others.join(' ')}\n`);
    expect(text).toContain('tcp-request connection reject unless from_allowed_network\n');
    const [self, peer] = [address, others[0]!].map((each) => (each.includes(':') ? `[${each}]` : each));
    expect(text).toContain(`server host_h2 ${peer}:10077 source ${self}\n`);
  });
});

it('HAProxy does not read the certificate authorities of the host at each start', () => {
  const settings: GlobalSettings = {
    unprivileged: false,
    maxConnections: 8_000,
    hardStopSeconds: 30,
    oldWorkers: 3,
    peers: null,
  };
  const [global] = renderGlobal(settings, layout, '1', 'structure').split(/^(?=\S)/m);
  expect(global).toContain('  httpclient.ssl.verify none\n');
});

describe('the digest of settings', () => {
  const desired = balancer({ members: [member(1), member(2)] });

  it.each([
    ['a member more', { members: [...desired.pools[0]!.members, member(3)] }],
    ['another weight', { members: desired.pools[0]!.members.map((each) => ({ ...each, weight: 9 })) }],
    ['a backup', { members: desired.pools[0]!.members.map((each) => ({ ...each, backup: true })) }],
    ['a disabled member', { members: desired.pools[0]!.members.map((each) => ({ ...each, enabled: false })) }],
    ['another monitor address', { members: desired.pools[0]!.members.map((each) => ({ ...each, monitorPort: 7 })) }],
    ['none', { members: [] }],
  ])('does not depend on %s', (_, changes) => {
    const next = render(withPool(desired, changes));
    expect(next.settings).toBe(render(desired).settings);
    expect(next.text).not.toBe(`${render(desired).text} `);
  });

  it.each([
    ['algorithm', withPool(desired, { algorithm: 'LEAST_CONNECTIONS' })],
    ['monitor', withPool(desired, { monitor: monitor() })],
    ['monitor delay', withPool(desired, { monitor: monitor({ delay: 1000 }) })],
    ['persistence', withPool(desired, { persistence: sourceIp })],
    ['limit', withListener(desired, { connectionLimit: 5 })],
    ['port', withListener(desired, { port: 81 })],
    ['address', { ...desired, address: '127.1.2.3' }],
  ])('depends on %s', (_, next) => expect(render(next).settings).not.toBe(render(desired).settings));

  it('is empty for disabled and UDP load balancers', () => {
    expect(render({ ...desired, enabled: false })).toMatchObject({ settings: '', text: '' });
    const udp = balancer({ protocol: 'UDP' }, { protocol: 'UDP' });
    expect(render(udp)).toMatchObject({ settings: '', text: '', udpPorts: [80] });
  });

  it('specs contain no keys', () => {
    const { spec, files } = extractFiles(balancer({}, { protocol: 'TERMINATED_HTTPS', certificate }));
    expect(JSON.stringify(spec)).not.toContain('"PEM"');
    expect([...files.values()]).toEqual(['PEM']);
  });
});

describe('the configuration of a pool', () => {
  it('contains a cookie of its own for each pool', () => {
    const persistence = { ...sourceIp, type: 'HTTP_COOKIE' } as const;
    const cookieOf = (one: DesiredLoadBalancer) => /cookie (SRV_\w+) insert/.exec(render(one).text)?.[1];
    const [first, second] = [balancer({ persistence }), balancer({ persistence })];
    expect(cookieOf(first)).toBe(`SRV_${first.pools[0]!.id.slice(0, 8)}`);
    expect(cookieOf(second)).not.toBe(cookieOf(first));
  });

  it('contains the cookie that the client names', () => {
    const persistence = { ...sourceIp, type: 'HTTP_COOKIE', cookieName: 'sticky' } as const;
    expect(render(balancer({ persistence })).text).toContain('cookie sticky insert');
  });
});

describe('the difference between HAProxy and the desired state', () => {
  const one = { name: 'member_1', member: '1', address: '::1', port: 80, weight: 1, backup: false, maint: false };
  const rendered: RenderedPool = {
    id: 'p',
    backend: 'pool_p',
    servers: [{ ...one, checkAddress: '::1', checkPort: 80 }],
    options: ['check'],
    checked: true,
    cookies: false,
  };
  const has = (changes: Partial<ObservedServer> = {}): ObservedServer => ({
    backend: 'pool_p',
    name: 'member_1',
    address: '0:0:0:0:0:0:0:1',
    port: 80,
    weight: 1,
    up: true,
    maint: false,
    draining: false,
    checkEnabled: true,
    checkAddress: '::1',
    checkPort: 80,
    ...changes,
  });

  it('is empty for equal servers in any spelling', () => {
    expect(difference(rendered, [has()])).toEqual({ commands: [], removed: [] });
  });

  it.each([
    [{ weight: 2 }, ['set server pool_p/member_1 weight 1']],
    [{ port: 81 }, ['set server pool_p/member_1 addr ::1 port 80']],
    [{ maint: true }, ['set server pool_p/member_1 state ready']],
    [{ draining: true }, ['set server pool_p/member_1 state ready']],
    [{ checkPort: 9 }, ['set server pool_p/member_1 check-addr ::1 port 80']],
    [{ checkEnabled: false }, ['enable health pool_p/member_1']],
  ])('%j needs %j', (changes, commands) => expect(difference(rendered, [has(changes)]).commands).toEqual(commands));

  it('adds servers before it disables others, and deletes none at once', () => {
    expect(difference(rendered, [has({ name: 'member_2' })])).toMatchObject({
      commands: [
        'add server pool_p/member_1 [::1]:80 weight 1 check addr [::1] port 80',
        'enable health pool_p/member_1',
        'enable server pool_p/member_1',
        'set server pool_p/member_2 state maint',
      ],
      removed: [{ name: 'member_2', kept: false }],
    });
  });

  it('keeps the connections of a member with a new role', () => {
    const found = difference(rendered, [has(), has({ name: 'backup_1', maint: true })]);
    expect(found).toMatchObject({ commands: [], removed: [{ name: 'backup_1', kept: true }] });
  });
});

describe('the capabilities of a host', () => {
  const host = (facts: Partial<HostFacts> & { without?: string }): HostFacts => ({
    program: (name) => (name === facts.without ? null : `/usr/sbin/${name}`),
    haproxyVersion: () => 'HAProxy version 2.6.12-1+deb12u4 2026/10/17',
    streamModule: '/usr/lib/nginx/modules/ngx_stream_module.so',
    ...facts,
  });

  it('include everything with all programs', () => {
    expect(findHaproxy(host({}))).toMatchObject({ haproxy: '/usr/sbin/haproxy' });
    expect(findHaproxy(host({})).remedy).toBeUndefined();
  });

  it.each([
    ['without HAProxy', { without: 'haproxy' }, /not installed/],
    ['with an old HAProxy', { haproxyVersion: () => 'HA-Proxy version 2.4.22' }, /too old/],
    ['with one that reports no version', { haproxyVersion: () => '' }, /does not report/],
  ])('include nothing %s', (_, facts, detail) => {
    const finding = findHaproxy(host(facts));
    expect(finding.haproxy).toBeNull();
    expect(finding.detail).toMatch(detail);
    expect(finding.remedy).toMatch(/^apt-get install haproxy /);
  });

  it.each([
    ['without nginx', { without: 'nginx' }],
    ['without its stream module', { streamModule: null }],
  ])('do not include UDP %s', (_, facts) => {
    const finding = findHaproxy(host(facts));
    expect(finding).toMatchObject({ haproxy: '/usr/sbin/haproxy', nginx: null });
    expect(finding.remedy).toBe('apt-get install haproxy nginx-light libnginx-mod-stream && npm start');
  });
});

/** Unit: bytes. */
function heapAfterCollection(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

describe('readings', () => {
  const csv = `# pxname,svname,scur,stot,bin,bout,ereq,dreq,type,hrsp_2xx,hrsp_5xx,req_tot,dcon,econ\nlistener_a,FRONTEND,1,2,3,4,5,6,0,7,9,8,1,\nlistener_t,FRONTEND,1,2,3,4,,,0,,,,1,\npool_b,member_c,1,2,3,4,,,2,9,,,,\npool_b,BACKEND,1,2,3,4,,,1,9,,,,13\n`;
  it('have counters by listener', () => {
    const counters = { activeConnections: 1, totalConnections: 2, bytesIn: 3, bytesOut: 4 };
    expect([...parseCounters(csv, new Map([['t', 'b']]))]).toEqual([
      ['a', { ...counters, requests: 8, requestErrors: 12, serverErrors: 9 }],
      ['t', { ...counters, requests: 0, requestErrors: 1, serverErrors: 13 }],
    ]);
  });

  it('never fall when the pool of a TCP listener changes', async () => {
    const tcp = { id: 't', protocol: 'TCP', defaultPoolId: 'b' };
    const worker = { running: async () => ({ worker: 1 }) } as HaproxyProcess;
    const traffic = createTrafficCounters(worker, new Map([['lb', { listeners: [tcp] } as Spec]]));
    const errors = async () => (await traffic.read(csv)).get('t')?.serverErrors;
    expect(await errors()).toBe(13);
    tcp.defaultPoolId = 'another';
    expect(await errors()).toBe(13);
  });

  it('keep the counters of ended workers while the listener exists, and no text of HAProxy', async () => {
    const [first, second] = ['aaaaaaaa-first-listener', 'bbbbbbbb-second-listener'];
    let pid = 0;
    const ended = { running: async () => ({ worker: pid }), oldWorkers: async () => [] } as unknown as HaproxyProcess;
    const specs = new Map<string, Spec>();
    const traffic = createTrafficCounters(ended, specs);
    const requests = async (...listeners: string[]) => {
      specs.set('lb', { listeners: listeners.map((id) => ({ id, protocol: 'HTTP' })) } as Spec);
      pid += 1;
      const lines = listeners.map((id) => `listener_${id},FRONTEND,7`).join('\n');
      const text = `# pxname,svname,req_tot\n${lines}\n${'x'.repeat(MIB)}\n`;
      const read = await traffic.read(text);
      return listeners.map((id) => read.get(id)?.requests);
    };
    expect(await requests(first)).toEqual([7]);
    expect(await requests(first, second)).toEqual([14, 7]);
    expect(await requests(second)).toEqual([14]);
    expect(await requests(first, second)).toEqual([7, 21]);
    const before = heapAfterCollection();
    // Each text has a new listener. The text of the last worker is kept.
    for (let at = 0; at < 60; at++) await requests(...Array.from({ length: at + 1 }, (_, i) => `listener-number-${i}`));
    expect(heapAfterCollection() - before).toBeLessThan(20 * MIB);
  });

  it('become metrics with the names of the exporter', () => {
    const text = exposition(csv);
    expect(text).toContain('haproxy_frontend_bytes_in_total{proxy="listener_a"} 3\n');
    expect(text).toContain('haproxy_server_http_responses_total{proxy="pool_b",server="member_c",code="2xx"} 9\n');
    expect(text.split('# HELP haproxy_frontend_bytes_in_total').length).toBe(2);
  });

  it('are requested in lines that fit into a buffer of HAProxy', () => {
    const commands = Array.from({ length: 1000 }, (_, at) => `show stat ${at}`);
    const lines = linesOf(commands);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(13_000);
    expect(lines.join(';').split(';')).toEqual(commands);
  });
});
