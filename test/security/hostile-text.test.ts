/**
 * Text that could inject configuration or commands. Each text field of pools, members, monitors and listeners either
 * refuses it with an error at that field, or stores it unchanged.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { useCloudyard } from '../harness.ts';
import { createTestLoadBalancerHost } from '../load-balancer-host.ts';
import {
  builders,
  freshPort,
  listeners,
  member,
  monitor,
  paths,
  pools,
  v2,
} from '../../src/resources/load-balancers/test-balancers.ts';

const cloud = useCloudyard({ loadBalancerDriver: createTestLoadBalancerHost() });
const { aBalancer, aListener, aPool, created, getListener, getPool } = builders(cloud);
const policies = '/cloud/v1/l7policies/1/1';

let balancer: string;
let pool: string;
let listener: string;
let policy: string;
let rule: string;
beforeAll(async () => {
  balancer = await aBalancer();
  pool = await aPool({ load_balancer_id: balancer });
  listener = await aListener(balancer);
  const reject = { action: 'REJECT', listener_id: listener };
  policy = `${policies}/${await created(await cloud.post(policies, reject), 'l7polices')}`;
  const first = { type: 'PATH', compare_type: 'EQUAL_TO', value: '/' };
  rule = `${policy}/rules/${await created(await cloud.post(`${policy}/rules`, first), 'l7rules')}`;
});

const odd = [
  '\n',
  '\r',
  '\0',
  '\t',
  ' ',
  ';',
  '"',
  "'",
  '`',
  '\\',
  '#',
  '$',
  '%',
  '{',
  '}',
  '|',
  '&',
  '<',
  '>',
  '\u2028',
  '\ud800',
  'é',
  '\x7f',
];
const attacks = [
  'x\n  server evil 10.0.0.9:80',
  'x; show servers state',
  "' http-request deny '",
  '%[src]',
  '${HOME}',
  '\\n',
  'x\r\nX-Evil: 1',
  '../../etc/passwd',
  '__proto__',
];
/** Valid values of a field with hostile text inserted, prepended or appended. */
const hostile = (valid: string) =>
  fc.oneof(
    fc.constantFrom(...attacks, ...odd, ...odd.map((char) => valid + char), ...odd.map((char) => char + valid)),
    fc
      .tuple(fc.constantFrom(...odd, ...attacks), fc.nat(valid.length))
      .map(([text, at]) => valid.slice(0, at) + text + valid.slice(at)),
    fc.string({ unit: 'binary', maxLength: 70 }),
    fc.string({ maxLength: 300 }),
  );

interface Field {
  path: string;
  /** A value that the field accepts. */
  valid: string;
  body(text: string): object;
  /** Reads the value from a response; null if it is not stored. */
  shown: ((body: Record<string, any>) => unknown) | null;
}

const inMonitor = (field: string, valid: string): Field => ({
  path: `healthmonitor.${field}`,
  valid,
  body: (text) => ({ healthmonitor: monitor({ type: 'HTTP', [field]: text }) }),
  shown: (body) => body['healthmonitor'][field],
});
const inPersistence = (field: string, valid: string, type: string): Field => ({
  path: `session_persistence.${field}`,
  valid,
  body: (text) => ({ session_persistence: { type, [field]: text } }),
  shown: (body) => body['session_persistence'][field],
});
const inMember = (field: string, valid: string, isKept = true): Field => ({
  path: `members.0.${field}`,
  valid,
  body: (text) => ({ members: [member(1, { [field]: text })] }),
  shown: isKept ? (body) => body['members'][0][field] : null,
});
const plain = (path: string, valid: string, more: object = {}): Field => ({
  path,
  valid,
  body: (text) => ({ ...more, [path]: text }),
  shown: (body) => body[path],
});
const someId = '11111111-1111-4111-8111-111111111111';

const ofPool: Field[] = [
  plain('name', 'a pool'),
  plain('protocol', 'HTTP'),
  plain('lb_algorithm', 'ROUND_ROBIN'),
  plain('ca_secret_id', someId, { protocol: 'HTTPS' }),
  plain('crl_secret_id', someId, { protocol: 'HTTPS' }),
  plain('secret_id', someId, { protocol: 'HTTPS' }),
  inMonitor('type', 'HTTP'),
  inMonitor('http_method', 'GET'),
  inMonitor('http_version', '1.1'),
  inMonitor('url_path', '/healthz'),
  inMonitor('domain_name', 'a.example'),
  inMonitor('expected_codes', '200,204'),
  { ...inMonitor('id', someId), shown: null },
  inPersistence('type', 'HTTP_COOKIE', 'HTTP_COOKIE'),
  inPersistence('cookie_name', 'session', 'APP_COOKIE'),
  {
    ...inPersistence('persistence_granularity', '255.255.255.0', 'SOURCE_IP'),
    body: (text) => ({
      protocol: 'UDP',
      healthmonitor: null,
      session_persistence: { type: 'SOURCE_IP', persistence_granularity: text },
    }),
  },
  inMember('address', '10.0.0.1'),
  inMember('monitor_address', '10.0.0.1'),
  inMember('subnet_id', someId),
  inMember('instance_id', someId, false),
  inMember('id', someId, false),
  inMember('operating_status', 'ONLINE', false),
  inMember('provisioning_status', 'ACTIVE', false),
];

const hash = `$6$saltsalt$${'a'.repeat(86)}`;
const ofListener: Field[] = [
  plain('name', 'a listener'),
  plain('secret_id', someId),
  {
    path: 'sni_secret_id.0',
    valid: someId,
    body: (text) => ({ sni_secret_id: [text] }),
    shown: (body) => body['sni_secret_id'][0],
  },
  {
    path: 'allowed_cidrs.0',
    valid: '10.0.0.0/8',
    body: (text) => ({ allowed_cidrs: [text] }),
    shown: (body) => body['allowed_cidrs'][0],
  },
  {
    path: 'user_list.0.username',
    valid: 'alice',
    body: (text) => ({ user_list: [{ username: text, encrypted_password: hash }] }),
    shown: (body) => body['user_list'][0].username,
  },
  {
    path: 'user_list.0.encrypted_password',
    valid: hash,
    body: (text) => ({ user_list: [{ username: 'alice', encrypted_password: text }] }),
    shown: (body) => body['user_list'][0].encrypted_password,
  },
];

const ofPolicy: Field[] = [
  plain('name', 'a policy', { action: 'REJECT' }),
  plain('redirect_url', 'https://example.com/a', { action: 'REDIRECT_TO_URL' }),
  plain('redirect_prefix', 'https://example.com/a', { action: 'REDIRECT_PREFIX' }),
  {
    path: 'tags.0',
    valid: 'a tag',
    body: (text) => ({ action: 'REJECT', tags: [text] }),
    shown: (body) => body['tags'][0],
  },
];
const ofRule: Field[] = [
  plain('value', '/a', { type: 'PATH', key: null }),
  plain('key', 'X-Tier', { type: 'HEADER', value: 'a' }),
];

const runs = { numRuns: 100 };

/** Expects an error at the field, or that the text is stored unchanged. */
async function refusedOrExact(
  field: Field,
  text: string,
  send: (body: object) => ReturnType<typeof cloud.patch>,
  get: () => Promise<Record<string, any>>,
): Promise<void> {
  const answer = await send(field.body(text));
  if (answer.status === 400) {
    const named = paths(answer);
    expect(named.length).toBeGreaterThan(0);
    for (const path of named) expect([field.path, field.path.split('.')[0]]).toContain(path);
    return;
  }
  expect(answer.status).toBe(200);
  if (answer.body.tasks.length > 0) expect((await cloud.ended(answer)).body.state).toBe('FINISHED');
  if (field.shown) expect(field.shown(await get())).toBe(text);
}

describe('hostile text in a pool is refused at its field or stored unchanged:', () => {
  it.each(ofPool.map((field) => [field.path, field] as const))('%s', async (_path, field) => {
    await fc.assert(
      fc.asyncProperty(hostile(field.valid), (text) =>
        refusedOrExact(
          field,
          text,
          (body) => cloud.patch(v2(`${pools}/${pool}`), body),
          () => getPool(pool),
        ),
      ),
      runs,
    );
  });

  it.each(['listener_id', 'load_balancer_id', 'loadbalancer_id'])('%s', async (field) => {
    const valid = { name: 'a pool', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN' };
    await fc.assert(
      fc.asyncProperty(hostile(someId), async (text) => {
        const answer = await cloud.post(pools, { ...valid, [field]: text });
        expect([answer.status, paths(answer)]).toEqual([400, [field]]);
      }),
      runs,
    );
  });
});

describe('hostile text in a listener is refused at its field or stored unchanged:', () => {
  it.each(ofListener.map((field) => [field.path, field] as const))('%s', async (_path, field) => {
    await fc.assert(
      fc.asyncProperty(hostile(field.valid), (text) =>
        refusedOrExact(
          field,
          text,
          (body) => cloud.patch(v2(`${listeners}/${listener}`), body),
          () => getListener(listener),
        ),
      ),
      runs,
    );
  });

  it.each(['load_balancer_id', 'loadbalancer_id', 'default_pool_id', 'protocol'])('%s', async (field) => {
    const valid = { name: 'a listener', protocol: 'HTTP', protocol_port: freshPort() };
    await fc.assert(
      fc.asyncProperty(hostile(someId), async (text) => {
        const answer = await cloud.post(listeners, { ...valid, load_balancer_id: balancer, [field]: text });
        expect(answer.status).toBe(400);
        expect(paths(answer)).toContain(field);
      }),
      runs,
    );
  });
});

describe('hostile text in a query', () => {
  it.each([pools, listeners])('filters %s by exactly that text or is refused', async (path) => {
    await fc.assert(
      fc.asyncProperty(hostile('a pool'), async (text) => {
        const { status, body } = await cloud.get(`${path}?name=${encodeURIComponent(text.toWellFormed())}`);
        if (status === 200) for (const { name } of body.results) expect(name).toContain(text.toWellFormed());
        else expect([status, body.errors[0].path]).toEqual([400, 'name']);
      }),
      runs,
    );
  });
});

describe('hostile text in an L7 policy is refused at its field or stored unchanged:', () => {
  it.each(ofPolicy.map((field) => [field.path, field] as const))('%s', async (_path, field) => {
    await fc.assert(
      fc.asyncProperty(hostile(field.valid), (text) =>
        refusedOrExact(
          field,
          text,
          (body) => cloud.patch(policy, body),
          async () => (await cloud.get(policy)).body,
        ),
      ),
      runs,
    );
  });
});

describe('hostile text in an L7 rule is refused at its field or stored unchanged:', () => {
  it.each(ofRule.map((field) => [field.path, field] as const))('%s', async (_path, field) => {
    await fc.assert(
      fc.asyncProperty(hostile(field.valid), (text) =>
        refusedOrExact(
          field,
          text,
          (body) => cloud.request('PUT', rule, body),
          async () => (await cloud.get(rule)).body,
        ),
      ),
      runs,
    );
  });
});
