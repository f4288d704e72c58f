/** Requests about L7 policies and rules that are refused and change nothing. */
import { describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../../../test/harness.ts';
import { requires } from '../../../../test/requires.ts';
import { type CheckPattern, createPatternCheck } from '../../../drivers/haproxy/pattern-check.ts';
import { DriverError } from '../../../errors/driver-error.ts';
import { builders, knownSecrets, listeners, paths, unknownId } from '../test-balancers.ts';

const checkWithHaproxy = createPatternCheck();
let checkPattern: CheckPattern = checkWithHaproxy;
const cloud = useCloudyard({ audit: false, checkPattern: (pattern) => checkPattern(pattern) });
const { aBalancer, aListener, aPool, created } = builders(cloud);
const policies = '/cloud/v1/l7policies/1/1';
const certificate = '22222222-2222-4222-8222-222222222222';

const count = async () => {
  const { rows } = await cloud.db.$client.query(
    `select (select count(*) from lb_l7_policies) as policies, (select count(*) from lb_l7_rules) as rules,
       (select count(*) from tasks) as tasks, (select sum(generation) from load_balancers) as generations`,
  );
  return rows[0];
};

/** The request is refused for these fields and changes nothing. */
async function refused(send: () => Promise<Answer>, fields: string[], status = 400): Promise<Answer> {
  const before = await count();
  const answer = await send();
  const found = [...new Set(paths(answer))].sort();
  expect({ ...answer, found }).toMatchObject({ status, found: [...fields].sort() });
  expect(await count()).toEqual(before);
  return answer;
}

const url = 'https://example.com';
const target = { REDIRECT_TO_URL: { redirect_url: url }, REDIRECT_PREFIX: { redirect_prefix: url } } as const;

let shared: Promise<{ balancer: string; listener: string; policy: string }> | null = null;
const place = () =>
  (shared ??= (async () => {
    const balancer = await aBalancer();
    const listener = await aListener(balancer);
    const policy = await created(await cloud.post(policies, { action: 'REJECT', listener_id: listener }), 'l7polices');
    return { balancer, listener, policy };
  })());

describe('a policy', () => {
  const cases: [what: string, body: Record<string, unknown>, fields: string[]][] = [
    ['no action', { action: undefined }, ['action']],
    ['an unknown action', { action: 'DROP' }, ['action']],
    ['an unknown field', { colour: 'red' }, ['colour']],
    ['a listener that is not a UUID', { listener_id: 'x' }, ['listener_id']],
    ['an unknown listener', { listener_id: unknownId }, ['listener_id']],
    ['position 0', { position: 0 }, ['position']],
    ['a negative position', { position: -1 }, ['position']],
    ['a fraction as position', { position: 1.5 }, ['position']],
    ['a position beyond an integer', { position: 2 ** 31 }, ['position']],
    ['a short name', { name: 'a' }, ['name']],
    ['too many tags', { tags: Array.from({ length: 51 }, (_, n) => `t${n}`) }, ['tags']],
    ['a tag twice', { tags: ['a', 'a'] }, ['tags.1']],
    ['an empty tag', { tags: [''] }, ['tags.0']],
    ['a long tag', { tags: ['x'.repeat(256)] }, ['tags.0']],
    ['a URL for REJECT', { redirect_url: url }, ['redirect_url']],
    ['a pool for REJECT', { redirect_pool_id: unknownId }, ['redirect_pool_id']],
    ['a code for REJECT', { redirect_http_code: 302 }, ['redirect_http_code']],
    ['no URL', { action: 'REDIRECT_TO_URL' }, ['redirect_url']],
    ['no prefix', { action: 'REDIRECT_PREFIX', redirect_url: url }, ['redirect_prefix', 'redirect_url']],
    ['no pool', { action: 'REDIRECT_TO_POOL' }, ['redirect_pool_id']],
    ['an unknown pool', { action: 'REDIRECT_TO_POOL', redirect_pool_id: unknownId }, ['redirect_pool_id']],
    [
      'a code for a pool',
      { action: 'REDIRECT_TO_POOL', redirect_pool_id: unknownId, redirect_http_code: 301 },
      ['redirect_http_code', 'redirect_pool_id'],
    ],
    ...[300, 304, 305, 306, 309, 200, 0, -302].map((code): [string, Record<string, unknown>, string[]] => [
      `code ${code}`,
      { action: 'REDIRECT_TO_URL', ...target.REDIRECT_TO_URL, redirect_http_code: code },
      ['redirect_http_code'],
    ]),
    ...[
      '',
      '/x',
      'example.com',
      'ftp://x',
      'javascript:alert(1)',
      'http://',
      'https:///x',
      'http://a b/',
      'http://é.com/',
      'http://x/\r\nSet-Cookie: a=b',
      'http://x/%zz',
      'http://x/"',
      'http://user:p@x/',
      'http://x:99999/',
      `http://x/${'a'.repeat(250)}`,
    ].map((bad): [string, Record<string, unknown>, string[]] => [
      `URL ${JSON.stringify(bad)}`,
      { action: 'REDIRECT_TO_URL', redirect_url: bad },
      ['redirect_url'],
    ]),
  ];
  it.each(cases)('is refused with %s', async (_, body, fields) => {
    const { listener, policy } = await place();
    await refused(() => cloud.post(policies, { action: 'REJECT', listener_id: listener, ...body }), fields);
    if ('listener_id' in body) return;
    await refused(() => cloud.patch(`${policies}/${policy}`, { action: 'REJECT', ...body }), fields);
  });

  it.each(['TCP', 'HTTPS', 'UDP', 'PROMETHEUS'])('is refused on a %s listener', async (protocol) => {
    const { balancer } = await place();
    const listener = await aListener(balancer, { protocol });
    const { body } = await refused(
      () => cloud.post(policies, { action: 'REJECT', listener_id: listener }),
      ['listener_id'],
    );
    expect(body.message).toContain(`not ${protocol}`);
  });

  it('is refused with a pool of another load balancer, or of a protocol without HTTP', async () => {
    const { balancer, listener } = await place();
    const other = await aPool({ load_balancer_id: await aBalancer() });
    const tcp = await aPool({ load_balancer_id: balancer, protocol: 'TCP' });
    const redirect = (redirect_pool_id: string) => () =>
      cloud.post(policies, { action: 'REDIRECT_TO_POOL', listener_id: listener, redirect_pool_id });
    expect((await refused(redirect(other), ['redirect_pool_id'])).body.message).toContain('belongs to load balancer');
    await refused(redirect(tcp), ['redirect_pool_id']);
    const shared = await aPool({ listener_id: await aListener(balancer, { protocol: 'TCP' }) });
    await refused(redirect(shared), ['redirect_pool_id']);
  });

  it('is not found by another id, nor without its project', async () => {
    for (const path of [`${policies}/${unknownId}`, `${policies.replace('/1/1', '/999/1')}/${unknownId}`]) {
      expect(await cloud.get(path)).toMatchObject({ status: 404 });
      expect(await cloud.patch(path, { action: 'REJECT' })).toMatchObject({ status: 404 });
      expect(await cloud.delete(path)).toMatchObject({ status: 404 });
    }
    expect(await cloud.get(`${policies}/x`)).toMatchObject({ status: 400 });
  });
});

describe('a rule', () => {
  const valid = { type: 'PATH', compare_type: 'EQUAL_TO', value: '/x' };
  const cases: [what: string, body: Record<string, unknown>, fields: string[]][] = [
    ['no type', { type: undefined }, ['type']],
    ['an unknown type', { type: 'QUERY' }, ['type']],
    ['an unknown comparison', { compare_type: 'LIKE' }, ['compare_type']],
    ['an empty value', { value: '' }, ['value']],
    ['a long value', { value: 'x'.repeat(256) }, ['value']],
    ['a value of many bytes', { value: '🙂'.repeat(129) }, ['value']],
    ['a line break', { value: 'a\nb' }, ['value']],
    ['a NUL', { value: 'a\0' }, ['value']],
    ['a lone surrogate', { value: '\ud800' }, ['value']],
    ['a key of a path', { key: 'x' }, ['key']],
    ['no key of a header', { type: 'HEADER' }, ['key']],
    ['an empty key of a cookie', { type: 'COOKIE', key: '' }, ['key']],
    ['a header with a space', { type: 'HEADER', key: 'a b' }, ['key']],
    ['a header that ends the quotes', { type: 'HEADER', key: "x') } #" }, ['key']],
    ['a cookie with a parenthesis', { type: 'COOKIE', key: 'x)' }, ['key']],
    ['a long key', { type: 'HEADER', key: 'x'.repeat(256) }, ['key']],
    ['a file type that contains', { type: 'FILE_TYPE', compare_type: 'CONTAINS' }, ['compare_type']],
    ['SSL_CONN_HAS_CERT without TLS', { type: 'SSL_CONN_HAS_CERT', value: 'True' }, ['type']],
    ['SSL_VERIFY_RESULT without TLS', { type: 'SSL_VERIFY_RESULT', value: '0' }, ['type']],
    ['SSL_DN_FIELD without TLS', { type: 'SSL_DN_FIELD', key: 'CN' }, ['type']],
    ['an expression that repeats a repetition', { compare_type: 'REGEX', value: '^(a+)+$' }, ['value']],
    ['an unknown field', { admin_state_up: true }, ['admin_state_up']],
    ['a bad expression and no key', { type: 'HEADER', compare_type: 'REGEX', value: '(' }, ['key', 'value']],
    ['invert as text', { invert: 'yes' }, ['invert']],
  ];
  it.each(cases)('is refused with %s', async (_, body, fields) => {
    const { policy } = await place();
    await refused(() => cloud.post(`${policies}/${policy}/rules`, { ...valid, ...body }), fields);
  });

  it.runIf(requires('haproxy')).each(['(', 'a)', '[a', 'a**', '(*NO_JIT)a', 'a)|(?:b', String.raw`(a)\1`])(
    'is refused with the expression %s, which HAProxy cannot use',
    async (value) => {
      const { policy } = await place();
      const body = { ...valid, compare_type: 'REGEX', value };
      const { body: error } = await refused(() => cloud.post(`${policies}/${policy}/rules`, body), ['value']);
      expect(error.message).toContain('is not a regular expression that HAProxy can use: ');
    },
  );

  it('is a retryable failure if its expression could not be checked', async () => {
    const { policy } = await place();
    checkPattern = async () => {
      throw new DriverError('killed', { customerMessage: 'could not be checked', retryable: true });
    };
    const body = { ...valid, compare_type: 'REGEX', value: 'a' };
    const answer = await refused(() => cloud.post(`${policies}/${policy}/rules`, body), [], 503);
    expect(answer.headers['retry-after']).toBe('1');
    checkPattern = checkWithHaproxy;
  });

  it('of the client certificate is checked on TLS listeners', async () => {
    knownSecrets(cloud, { [certificate]: 'certificate' });
    const secure = { protocol: 'TERMINATED_HTTPS', secret_id: certificate };
    const answer = await cloud.post(listeners, {
      ...secure,
      ...{ name: 'secure', protocol_port: 443, load_balancer_id: await aBalancer() },
    });
    const listener = answer.body.tasks
      ? (await cloud.get(`/v1/tasks/${answer.body.tasks[0]}`)).body.created_resources.listeners[0]
      : '';
    await cloud.ended(answer);
    const made = await cloud.post(policies, { action: 'REJECT', listener_id: listener });
    const policy = (await cloud.get(`/v1/tasks/${made.body.tasks[0]}`)).body.created_resources.l7polices[0];
    const post = (body: object) => () => cloud.post(`${policies}/${policy}/rules`, { ...valid, ...body });
    await refused(post({ type: 'SSL_CONN_HAS_CERT', value: 'False' }), ['value']);
    await refused(post({ type: 'SSL_CONN_HAS_CERT', value: 'True', compare_type: 'REGEX' }), ['compare_type']);
    await refused(post({ type: 'SSL_VERIFY_RESULT', value: '-1' }), ['value']);
    await refused(post({ type: 'SSL_DN_FIELD', key: '1' }), ['key']);
    for (const body of [
      { type: 'SSL_CONN_HAS_CERT', value: 'True' },
      { type: 'SSL_VERIFY_RESULT', value: '18' },
      { type: 'SSL_DN_FIELD', key: 'CN', compare_type: 'REGEX', value: '^a' },
    ]) {
      expect(await post(body)()).toMatchObject({ status: 200 });
    }
  });
});

describe('limits', () => {
  const insert = (sql: string, ...values: unknown[]) => cloud.db.$client.query(sql, values);
  const rules = (policy: string, many: number, compare: string) =>
    insert(
      `insert into lb_l7_rules select gen_random_uuid(), load_balancer_id, project_id, region_id, id, 'PATH', $2, null, '/x',
         false, '{}', 'ACTIVE', now(), null from lb_l7_policies, generate_series(1, $3::int) where id = $1`,
      policy,
      compare,
      many,
    );

  it('are 100 rules of a policy, and 2,000 rules and 50 expressions of a listener', async () => {
    const listener = await aListener((await place()).balancer);
    const aPolicy = async () =>
      created(await cloud.post(policies, { action: 'REJECT', listener_id: listener }), 'l7polices');
    const [first, second, third] = [await aPolicy(), await aPolicy(), await aPolicy()];
    const post =
      (policy: string, body: object = {}) =>
      () =>
        cloud.post(`${policies}/${policy}/rules`, { type: 'PATH', compare_type: 'EQUAL_TO', value: '/x', ...body });
    await rules(first, 100, 'EQUAL_TO');
    expect((await refused(post(first), [], 409)).body.message).toBe('a policy can have at most 100 rules');
    await rules(second, 50, 'REGEX');
    const regex = { compare_type: 'REGEX', value: 'x' };
    expect((await refused(post(second, regex), [], 409)).body.message).toContain(
      'at most 50 L7 rules of compare_type REGEX',
    );
    await rules(second, 500, 'CONTAINS');
    const contains = { compare_type: 'CONTAINS', value: 'x' };
    expect((await refused(post(third, contains), [], 409)).body.message).toContain(
      'at most 500 L7 rules of compare_type CONTAINS',
    );
    await rules(first, 1_350, 'EQUAL_TO');
    expect((await refused(post(third), [], 409)).body.message).toBe('a listener can have at most 2000 L7 rules');
  });

  it('are 1,000 policies of a listener', async () => {
    const listener = await aListener((await place()).balancer);
    await insert(
      `insert into lb_l7_policies select gen_random_uuid(), load_balancer_id, project_id, region_id, '', id, n, 'REJECT',
         null, null, null, null, '{}', 'ACTIVE', now(), null from lb_listeners, generate_series(1, 1000) n where id = $1`,
      listener,
    );
    const answer = await refused(() => cloud.post(policies, { action: 'REJECT', listener_id: listener }), [], 409);
    expect(answer.body.message).toBe('a listener can have at most 1000 L7 policies');
  });
});
