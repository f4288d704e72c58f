/** L7 policies and rules, seen by clients of a real HAProxy. */
import { randomUUID } from 'node:crypto';
import { request } from 'node:https';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import type { DesiredL7Policy, DesiredL7Rule, DesiredLoadBalancer } from '../load-balancer.ts';
import type { HaproxyDriver } from './driver.ts';
import {
  balancer,
  freeAddress,
  l7Policy,
  l7Rule,
  listener,
  member,
  pool,
  testHost,
  type TestHost,
} from './test-host.ts';
import { ask, authority, closeMembers, httpMember } from './test-members.ts';

const signal = new AbortController().signal;

interface Request {
  path?: string;
  headers?: Record<string, string>;
}

type Case = [rule: Partial<DesiredL7Rule>, matching: Request[], others: Request[]];

const path = (...paths: string[]): Request[] => paths.map((each) => ({ path: each }));
const host = (...hosts: string[]): Request[] => hosts.map((each) => ({ headers: { host: each } }));
const header = (...values: string[]): Request[] => values.map((each) => ({ headers: { 'x-tier': each } }));
const cookie = (...values: string[]): Request[] => values.map((each) => ({ headers: { cookie: each } }));
const byHeader = { type: 'HEADER', key: 'X-Tier' } as const;
const byCookie = { type: 'COOKIE', key: 'tier' } as const;

const cases: Case[] = [
  [{ type: 'PATH', compareType: 'EQUAL_TO', value: '/a' }, path('/a', '/a?b'), path('/a/', '/A', '/')],
  [{ type: 'PATH', compareType: 'STARTS_WITH', value: '/api/' }, path('/api/', '/api/x'), path('/api', '/x/api/')],
  [{ type: 'PATH', compareType: 'ENDS_WITH', value: '/end' }, path('/end', '/x/end?y=1'), path('/end/', '/ends')],
  [{ type: 'PATH', compareType: 'ENDS_WITH', value: '}' }, path('/a{b}', '/}?c'), path('/}a', '/?}', '/%7D')],
  [{ type: 'PATH', compareType: 'CONTAINS', value: 'mid' }, path('/amidst', '/mid'), path('/mi/d', '/?mid')],
  [{ type: 'PATH', compareType: 'REGEX', value: '^/v[0-9]+/(a|b)$' }, path('/v12/a', '/v1/b'), path('/v/a', '/v1/ab')],
  [
    { type: 'HOST_NAME', compareType: 'EQUAL_TO', value: 'Www.Example.com' },
    host('www.example.com', 'WWW.example.com:80'),
    host('example.com'),
  ],
  [{ type: 'HOST_NAME', compareType: 'STARTS_WITH', value: 'api.' }, host('api.x', 'API.y:8080'), host('x.api.')],
  [
    { type: 'HOST_NAME', compareType: 'ENDS_WITH', value: '.example.com' },
    host('a.example.com:81'),
    host('example.com', 'a.example.com.x'),
  ],
  [{ type: 'HOST_NAME', compareType: 'CONTAINS', value: 'stag' }, host('a.staging.x'), host('prod')],
  [
    { type: 'HOST_NAME', compareType: 'REGEX', value: String.raw`^(www\.)?shop\.(com|org)$` },
    host('shop.com', 'WWW.SHOP.ORG:80'),
    host('xshop.com'),
  ],
  [{ ...byHeader, compareType: 'EQUAL_TO', value: 'gold' }, header('gold', 'silver, gold'), header('golden', 'Gold')],
  [{ ...byHeader, compareType: 'STARTS_WITH', value: 'go' }, header('gold', 'x, go'), header('ago')],
  [{ ...byHeader, compareType: 'ENDS_WITH', value: 'ld' }, header('gold'), header('golden')],
  [{ ...byHeader, compareType: 'CONTAINS', value: 'ol' }, header('gold'), header('silver')],
  [{ ...byHeader, compareType: 'EQUAL_TO', value: 'a, b' }, header('a, b'), header('a', 'a, b, c', 'x, a, b')],
  [{ ...byHeader, compareType: 'CONTAINS', value: '(a, b' }, header('x (a, b)'), header('(a', '(a b')],
  [{ ...byHeader, compareType: 'REGEX', value: '^a, (b|c)$' }, header('a, c'), header('a', 'a, d')],
  [{ ...byHeader, compareType: 'EQUAL_TO', value: '}' }, header('}', 'a, }'), header('a}', '}a', '{')],
  [{ ...byHeader, compareType: 'STARTS_WITH', value: '}' }, header('}', '}a', 'a, }b'), header('a}', '{')],
  [{ ...byHeader, compareType: 'ENDS_WITH', value: '}' }, header('}', 'a}', 'b}, a'), header('}a', '{')],
  [{ ...byHeader, compareType: 'CONTAINS', value: '}' }, header('}', 'a}b', 'a, b}'), header('a', '{')],
  [{ ...byHeader, compareType: 'REGEX', value: '}' }, header('}', 'a}b'), header('a', '{')],
  [
    { ...byCookie, compareType: 'EQUAL_TO', value: 'gold' },
    cookie('a=1; tier=gold'),
    cookie('tier=golden', 'Tier=gold'),
  ],
  [{ ...byCookie, compareType: 'EQUAL_TO', value: '}' }, cookie('tier=}'), cookie('tier={', 'tier=}}')],
  [{ ...byCookie, compareType: 'STARTS_WITH', value: 'go' }, cookie('tier=gold'), cookie('tier=ago')],
  [{ ...byCookie, compareType: 'ENDS_WITH', value: 'ld' }, cookie('tier=gold; x=y'), cookie('tier=golden')],
  [{ ...byCookie, compareType: 'CONTAINS', value: 'ol' }, cookie('tier=gold'), cookie('other=gold')],
  [{ ...byCookie, compareType: 'REGEX', value: '^g.{2}d$' }, cookie('tier=gold'), cookie('tier=goold')],
  [
    { type: 'FILE_TYPE', compareType: 'EQUAL_TO', value: 'jpg' },
    path('/a/b.jpg', '/x.tar.jpg?v=1'),
    path('/jpg', '/a.jpgx', '/a.JPG'),
  ],
  [
    { type: 'FILE_TYPE', compareType: 'REGEX', value: '^(jpe?g|png)$' },
    path('/a.jpeg', '/b.png'),
    path('/a.gif', '/png', '/a.png/'),
  ],
  [
    { type: 'FILE_TYPE', compareType: 'REGEX', value: String.raw`php|\d` },
    path('/index.php5', '/a.b/c.7z?d'),
    path('/', '/php', '/2026/a?b.php', '/a.html'),
  ],
  [
    { type: 'HEADER', key: 'X!#$%&*+^_`|~-9', compareType: 'EQUAL_TO', value: 'a b' },
    [{ headers: { 'x!#$%&*+^_`|~-9': 'a b' } }],
    path('/'),
  ],
];

/** Text that HAProxy would interpret outside of quotes, or that would end them. */
const hostile = [
  `' } deny if TRUE #`,
  `"quoted" and 'quoted'`,
  '%[src] %{+Q}r ${HOME} $HOME',
  '# no comment',
  String.raw`back\slash\ and\nmore`,
  '-i -m reg .* -f /etc/passwd --',
  'grün, 東京, 🙂',
  ' leading and trailing ',
];

describe.skipIf(!requires('haproxy', 'openssl', 'root'))(
  skipReason('haproxy', 'openssl', 'root') ?? 'L7 policies',
  () => {
    let testing: TestHost;
    let driver: HaproxyDriver;
    const apply = async (desired: DesiredLoadBalancer) => {
      await driver.apply(desired, signal);
      return desired;
    };
    const withPolicies = (l7Policies: DesiredL7Policy[]) => apply(balancer({}, { l7Policies }));
    const hits = (n: number, rules: DesiredL7Rule[]) =>
      l7Policy({ action: 'REDIRECT_TO_URL', redirectUrl: `http://hit/${n}`, redirectHttpCode: 302, rules });
    const onlyFor = (n: number) => l7Rule({ type: 'HEADER', key: 'x-case', value: String(n) });
    const matches = async (address: string, n: number, { path: at = '/', headers = {} }: Request) =>
      (await ask(address, { 'x-case': String(n), ...headers }, at)).headers.location === `http://hit/${n}`;

    beforeAll(async () => {
      testing = testHost();
      driver = testing.driver();
      await driver.start();
    });
    afterEach(closeMembers);
    afterAll(() => driver.stop().finally(testing.cleanUp));

    it.each([false, true])('compares every type of rule with every compare type; inverted: %s', async (invert) => {
      const rules = cases.map(([rule]) => l7Rule({ ...rule, invert }));
      const { address } = await withPolicies(rules.map((rule, n) => hits(n, [onlyFor(n), rule])));
      const wrong: unknown[] = [];
      for (const [n, [rule, matching, others]] of cases.entries()) {
        for (const sent of [...matching, ...others]) {
          const expected = matching.includes(sent) !== invert;
          if ((await matches(address, n, sent)) !== expected) wrong.push([rule, sent, expected]);
        }
      }
      expect(wrong).toEqual([]);
    });

    it('takes hostile text of values literally', async () => {
      const rules = hostile.map((value) => l7Rule({ type: 'COOKIE', key: 'text', compareType: 'CONTAINS', value }));
      const { address } = await withPolicies(rules.map((rule, n) => hits(n, [onlyFor(n), rule])));
      const wrong = [];
      for (const [n, value] of hostile.entries()) {
        if (await matches(address, n, { headers: { cookie: 'text=other' } })) wrong.push(value);
      }
      expect(wrong).toEqual([]);
      const plain = hostile.indexOf('# no comment');
      expect(await matches(address, plain, { headers: { cookie: 'text="# no comment"' } })).toBe(true);
    });

    it('performs every action', async () => {
      const [a, b] = [await httpMember('a'), await httpMember('b')];
      const [usual, special] = [pool({ members: [member(a.port)] }), pool({ members: [member(b.port)] })];
      const at = (value: string) => [l7Rule({ compareType: 'STARTS_WITH', value })];
      const url = 'https://x.test/100%25?a=b%20c&d=[1]';
      const l7Policies = [
        l7Policy({ rules: at('/no') }),
        l7Policy({ action: 'REDIRECT_TO_URL', redirectUrl: url, redirectHttpCode: 307, rules: at('/url') }),
        l7Policy({
          action: 'REDIRECT_PREFIX',
          redirectPrefix: 'https://y.test/new/',
          redirectHttpCode: 301,
          rules: at('/prefix'),
        }),
        l7Policy({ action: 'REDIRECT_TO_POOL', redirectPoolId: special.id, rules: at('/pool') }),
        l7Policy({ action: 'REJECT', rules: [] }),
      ];
      const { address } = await apply({
        ...balancer(),
        pools: [usual, special],
        listeners: [listener({ defaultPoolId: usual.id, l7Policies })],
      });
      expect(await ask(address, {}, '/no')).toMatchObject({ status: 403 });
      expect(await ask(address, {}, '/url/x')).toMatchObject({ status: 307, headers: { location: url } });
      expect(await ask(address, {}, '/prefix/x?y=%20z')).toMatchObject({
        status: 301,
        headers: { location: 'https://y.test/new/prefix/x?y=%20z' },
      });
      expect(await ask(address, {}, '/pool')).toMatchObject({ status: 200, name: 'b' });
      expect(await ask(address, {}, '/')).toMatchObject({ status: 200, name: 'a' });
    });

    it('evaluates rejections, then redirects, then pools, each by position', async () => {
      const { port } = await httpMember('a');
      const target = pool({ members: [member(port)] });
      const at = (value: string) => l7Rule({ type: 'HEADER', key: 'x-at', compareType: 'CONTAINS', value });
      const redirect = (n: number, value: string) => hits(n, [at(value)]);
      const toPool = (value: string) =>
        l7Policy({ action: 'REDIRECT_TO_POOL', redirectPoolId: target.id, rules: [at(value)] });
      const l7Policies = [toPool('p'), redirect(1, 'u'), redirect(2, 'u'), l7Policy({ rules: [at('r')] })];
      const { address } = await apply({ ...balancer(), pools: [target], listeners: [listener({ l7Policies })] });
      const answer = async (value: string) => {
        const { status, headers, name } = await ask(address, { 'x-at': value });
        return headers.location ?? name ?? status;
      };
      expect(await answer('p u r')).toBe(403);
      expect(await answer('p u')).toBe('http://hit/1');
      expect(await answer('p')).toBe('a');
      expect(await answer('-')).toBe(503);
    });

    it('serves the longest values', async () => {
      const rules = ["'", '"', '%', '#', '\\'].map((character) =>
        l7Rule({ type: 'HEADER', key: 'x'.repeat(255), compareType: 'CONTAINS', value: character.repeat(255) }),
      );
      const { address } = await withPolicies([
        hits(0, [...rules, ...rules.map((rule) => ({ ...rule, id: randomUUID() }))]),
      ]);
      const text = rules.map(({ value }) => value).join('');
      expect(await matches(address, 0, { headers: { ['x'.repeat(255)]: text } })).toBe(true);
      expect(await matches(address, 0, { headers: { ['x'.repeat(255)]: text.slice(1) } })).toBe(false);
    });

    it('needs all of a hundred rules to match', async () => {
      const values = Array.from({ length: 100 }, (_, n) => `-${n}-`);
      const rules = values.map((value) => l7Rule({ compareType: 'CONTAINS', value }));
      const { port } = await httpMember('a');
      const target = pool({ members: [member(port)] });
      const toPool = l7Policy({ action: 'REDIRECT_TO_POOL', redirectPoolId: target.id, rules });
      const { address } = await apply({
        ...balancer(),
        pools: [target],
        listeners: [listener({ l7Policies: [toPool] })],
      });
      expect(await ask(address, {}, `/${values.join('')}`)).toMatchObject({ status: 200, name: 'a' });
      for (const missing of ['-0-', '-30-', '-99-']) {
        expect(await ask(address, {}, `/${values.filter((each) => each !== missing).join('')}`)).toMatchObject({
          status: 503,
        });
      }
    });

    it('omits a redirect to a disabled pool', async () => {
      const { port } = await httpMember('a');
      const pools = [pool({ enabled: false }), pool({ members: [member(port)] })];
      const l7Policies = pools.map(({ id }) =>
        l7Policy({ action: 'REDIRECT_TO_POOL', redirectPoolId: id, rules: [l7Rule()] }),
      );
      const { address } = await apply({ ...balancer(), pools, listeners: [listener({ l7Policies })] });
      expect(await ask(address)).toMatchObject({ status: 200, name: 'a' });
    });

    it('answers SSL rules without a client certificate', async () => {
      const ca = authority(testing.dataDir);
      const rule = (n: number, changes: Partial<DesiredL7Rule>) => hits(n, [onlyFor(n), l7Rule(changes)]);
      const l7Policies = [
        rule(0, { type: 'SSL_CONN_HAS_CERT', value: 'True' }),
        rule(1, { type: 'SSL_VERIFY_RESULT', value: '0' }),
        rule(2, { type: 'SSL_VERIFY_RESULT', value: '18' }),
        rule(3, { type: 'SSL_DN_FIELD', key: 'CN', compareType: 'REGEX', value: '.' }),
        rule(4, { type: 'SSL_CONN_HAS_CERT', value: 'True', invert: true }),
      ];
      const certificate = { id: randomUUID(), pem: ca.issue('l7.test') };
      const secure = listener({ protocol: 'TERMINATED_HTTPS', port: 443, certificate, l7Policies });
      const desired = await apply({ ...balancer(), address: freeAddress(), pools: [], listeners: [secure] });
      const found = await Promise.all(l7Policies.map((_, n) => secureLocation(desired.address, n)));
      expect(found).toEqual([undefined, 'http://hit/1', undefined, undefined, 'http://hit/4']);
    });

    it('rejects invalid policies before it changes anything', async () => {
      const { reloads } = driver.counters();
      const invalid = [
        l7Policy({ action: 'REDIRECT_TO_POOL', redirectPoolId: randomUUID() }),
        l7Policy({ action: 'REDIRECT_TO_URL', redirectUrl: 'javascript:alert(1)', redirectHttpCode: 302 }),
        l7Policy({ rules: [l7Rule({ value: 'a\nb' })] }),
        l7Policy({ rules: [l7Rule({ compareType: 'REGEX', value: '(' })] }),
        l7Policy({ rules: [l7Rule({ type: 'HEADER', key: "x') if" })] }),
      ];
      for (const policy of invalid) {
        await expect(withPolicies([policy])).rejects.toMatchObject({ retryable: false });
      }
      expect(driver.counters().reloads).toBe(reloads);
    });
  },
);

function secureLocation(address: string, n: number): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const options = { host: address, headers: { 'x-case': String(n) }, rejectUnauthorized: false, agent: false };
    request(options, (message) => resolve(message.resume().headers.location))
      .on('error', reject)
      .end();
  });
}
