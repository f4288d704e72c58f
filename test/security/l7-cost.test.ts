/** The most expensive L7 rules that a tenant can have, and requests made for them: a neighbour on the same HAProxy. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HaproxyDriver } from '../../src/drivers/haproxy/driver.ts';
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
} from '../../src/drivers/haproxy/test-host.ts';
import { ask, closeMembers, httpMember } from '../../src/drivers/haproxy/test-members.ts';
import { l7Limits } from '../../src/drivers/l7-rules.ts';
import type { DesiredL7Rule } from '../../src/drivers/load-balancer.ts';
import { requires, skipReason } from '../requires.ts';

const signal = new AbortController().signal;
/** Generous, because the machine may be busy. Without the limits one request takes seconds, and HAProxy's watchdog ends it. */
const maxMs = 2_000;

const manyAlternatives = [...'bcdefghijklmnopqrstuvwxyzABCDEFGHIJK'].map((letter) => `a*+${letter}`).join('|');
const patterns = ['a{1,200}a{1,200}[bc]', '[ab]*[ab]*[cd]', '(?:a|aa)+[bc]', `(?:a?){9}(?:${manyAlternatives})`];

describe.skipIf(!requires('haproxy', 'root'))(
  skipReason('haproxy', 'root') ?? 'a neighbour is soon served in spite of',
  () => {
    let host: TestHost;
    let driver: HaproxyDriver;
    let neighbour: string;
    beforeAll(async () => {
      host = testHost();
      driver = host.driver();
      await driver.start();
      const { port } = await httpMember('neighbour');
      const desired = balancer({ members: [member(port)] });
      await driver.apply(desired, signal);
      neighbour = desired.address;
    });
    afterAll(async () => {
      await closeMembers();
      await driver.stop().finally(host.cleanUp);
    });

    /** The time of a request with these headers, and of one to the neighbour that is sent meanwhile. */
    async function slowest(rules: DesiredL7Rule[], headers: Record<string, string>, path = '/') {
      const rulesOf = (n: number) => rules.slice(n * l7Limits.rulesOfPolicy, (n + 1) * l7Limits.rulesOfPolicy);
      const many = Math.ceil(rules.length / l7Limits.rulesOfPolicy);
      // Inverted rules that do not match let the next rule of the policy be evaluated.
      const l7Policies = Array.from({ length: many }, (_, n) =>
        l7Policy({ rules: [...rulesOf(n), l7Rule({ value: '/no' })] }),
      );
      const address = freeAddress();
      const target = pool();
      await driver.apply(
        { ...balancer(), tenant: '2', address, pools: [target], listeners: [listener({ l7Policies })] },
        signal,
      );
      const began = performance.now();
      const answers = await Promise.all([ask(address, headers, path), ask(neighbour)]);
      expect(answers[1]).toMatchObject({ status: 200, name: 'neighbour' });
      return { ms: performance.now() - began, status: answers[0].status };
    }

    it.each(patterns)('fifty patterns that backtrack: %s', async (value) => {
      const rule = { type: 'HEADER', key: 'x', compareType: 'REGEX', value, invert: true } as const;
      const rules = Array.from({ length: l7Limits.regexRules }, () => l7Rule(rule));
      const { ms, status } = await slowest(rules, { x: 'a'.repeat(511) });
      expect(status).toBe(503);
      expect(ms).toBeLessThan(maxMs);
      expect((await ask(neighbour)).name).toBe('neighbour');
    });

    it('a header of thousands of values', async () => {
      const rules = Array.from({ length: 1_900 }, () => l7Rule({ type: 'HEADER', key: 'x', value: 'b', invert: true }));
      const { ms, status } = await slowest(rules, { x: 'a,'.repeat(6_000) });
      expect(status).toBe(431);
      expect(ms).toBeLessThan(maxMs);
    });

    it('two thousand rules', async () => {
      const value = `${'a'.repeat(254)}b`;
      const compared = (compareType: 'CONTAINS' | 'ENDS_WITH', length: number) =>
        Array.from({ length }, () => l7Rule({ compareType, value, invert: true }));
      const rules = [...compared('CONTAINS', l7Limits.containsRules), ...compared('ENDS_WITH', 1_400)];
      const { ms, status } = await slowest(rules, {}, `/${'a'.repeat(12_000)}`);
      expect(status).toBe(503);
      expect(ms).toBeLessThan(maxMs);
    });
  },
);
