/** The contract of load balancer drivers (driver.ts), tested with each of them. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../test/requires.ts';
import {
  balancer,
  effectOf,
  listener,
  member,
  noEffect,
  testHost,
  withListener,
  withPool,
} from './haproxy/test-host.ts';
import type { DesiredLoadBalancer, LoadBalancerDriver } from './load-balancer.ts';
import { createSimulatedLoadBalancerDriver } from './simulated/load-balancer.ts';
import { adoptingSubject, simulatedSubject, type Subject } from './test-subject.ts';

const skipHaproxy = skipReason('haproxy', 'root');

contract('simulated', simulatedSubject(createSimulatedLoadBalancerDriver));
describe.skipIf(!requires('haproxy', 'root'))(skipHaproxy ?? 'on this host', () => {
  contract('haproxy', async () => adoptingSubject(testHost()));
});

function contract(name: string, make: () => Promise<Subject<LoadBalancerDriver>>): void {
  describe(`load balancer driver ${name}`, () => {
    const signal = new AbortController().signal;
    let subject: Subject<LoadBalancerDriver>;
    let driver: LoadBalancerDriver;
    const three = () => ({ members: [member(8001), member(8002), member(8003)] });
    const effectOfApply = (desired: DesiredLoadBalancer) => effectOf(driver, () => driver.apply(desired, signal));
    const readingOf = async (id: string) => (await driver.read()).find((each) => each.id === id);

    beforeAll(async () => {
      subject = await make();
      driver = subject.driver;
      await driver.start();
    });
    afterAll(async () => subject.cleanUp());

    it('is healthy and reports its status', () => {
      expect(driver.status()).toMatchObject({ driver: driver.name, real: driver.real, healthy: true });
      expect(driver.status().detail).not.toBe('');
    });

    it('creates, and then has nothing to change', async () => {
      const desired = balancer(three());
      expect(await effectOfApply(desired)).toMatchObject({ reloads: 1 });
      expect(await effectOfApply(desired)).toEqual(noEffect);
      expect(await driver.list()).toContain(desired.id);
    });

    it('adds and removes members without a reload, and once', async () => {
      const desired = balancer(three());
      await driver.apply(desired, signal);
      const [kept, other] = desired.pools[0]!.members;
      const steps = [
        withPool(desired, { members: [...desired.pools[0]!.members, member(8004, { backup: true })] }),
        withPool(desired, {
          members: [
            { ...kept!, weight: 7 },
            { ...other!, enabled: false },
          ],
        }),
        withPool(desired, { members: [{ ...kept!, backup: true, monitorPort: 8009 }] }),
        withPool(desired, { members: [] }),
        withPool(desired, { members: [other!] }),
      ];
      for (const next of steps) {
        const { reloads, runtimeChanges } = await effectOfApply(next);
        expect(reloads).toBe(0);
        expect(runtimeChanges).toBeGreaterThan(0);
        expect(await effectOfApply(next)).toEqual(noEffect);
        const members = next.pools[0]!.members.map(({ id }) => id);
        expect([...(await readingOf(desired.id))!.members.keys()].sort()).toEqual(members.sort());
      }
    });

    it('ignores the order of members', async () => {
      const desired = balancer(three());
      await driver.apply(desired, signal);
      const turned = withPool(desired, { members: desired.pools[0]!.members.toReversed() });
      expect(await effectOfApply(turned)).toEqual(noEffect);
    });

    it('changes a listener by one reload', async () => {
      const desired = balancer(three());
      await driver.apply(desired, signal);
      expect(await effectOfApply(withListener(desired, { connectionLimit: 5 }))).toMatchObject({ reloads: 1 });
    });

    it('reads members and listeners', async () => {
      const [on, off, drained] = [member(8001), member(8002, { enabled: false }), member(8003, { weight: 0 })];
      const closed = listener({ port: 81, enabled: false });
      const made = balancer({ members: [on, off, drained] });
      const desired = { ...made, listeners: [...made.listeners, closed] };
      await driver.apply(desired, signal);
      const reading = (await readingOf(desired.id))!;
      expect(Object.fromEntries(reading.members)).toEqual({
        [on.id]: 'UNCHECKED',
        [off.id]: 'MAINT',
        [drained.id]: 'DRAIN',
      });
      expect([...reading.listeners.keys()]).toEqual([desired.listeners[0]!.id]);
      await driver.apply({ ...desired, enabled: false }, signal);
      const disabled = (await readingOf(desired.id))!;
      expect([...disabled.members.values()]).toEqual(['MAINT', 'MAINT', 'MAINT']);
      expect(disabled.listeners.size).toBe(0);
    });

    it('removes, also unknown ids', async () => {
      const [desired, other] = [balancer(three()), balancer(three())];
      await Promise.all([driver.apply(desired, signal), driver.apply(other, signal)]);
      await driver.remove(desired.id, signal);
      expect(await driver.list()).not.toContain(desired.id);
      await driver.remove(desired.id, signal);
      await driver.remove(randomUUID(), signal);
      expect(await driver.list()).toContain(other.id);
      expect(await effectOfApply(other)).toEqual(noEffect);
    });

    it('quarantines, and then the id is free again', async () => {
      const desired = balancer(three());
      await driver.apply(desired, signal);
      await driver.quarantine(desired.id);
      await driver.quarantine(desired.id);
      expect(await driver.list()).not.toContain(desired.id);
      expect(await effectOfApply(desired)).toMatchObject({ reloads: 1 });
    });

    it('rejects invalid settings with a message for the customer, and changes nothing', async () => {
      const desired = balancer(three());
      await driver.apply(desired, signal);
      const wrong = withListener(desired, { protocol: 'TERMINATED_HTTPS' });
      const failure = driver.apply(wrong, signal);
      await expect(failure).rejects.toMatchObject({
        retryable: false,
        customerMessage: expect.stringContaining('is required for TERMINATED_HTTPS'),
      });
      expect(await effectOfApply(desired)).toEqual(noEffect);
    });

    it('rejects an address and port in use', async () => {
      const desired = balancer(three());
      await driver.apply(desired, signal);
      const thief = balancer(three(), {}, { address: desired.address });
      await expect(driver.apply(thief, signal)).rejects.toMatchObject({ retryable: false });
      expect(await driver.list()).not.toContain(thief.id);
      await driver.remove(desired.id, signal);
      expect(await effectOfApply(thief)).toMatchObject({ reloads: 1 });
    });

    it('handles calls for many ids at once', async () => {
      const many = Array.from({ length: 8 }, () => balancer(three()));
      await Promise.all(many.map((each) => driver.apply(each, signal)));
      expect(await driver.list()).toEqual(expect.arrayContaining(many.map(({ id }) => id)));
      await Promise.all(many.map(({ id }) => driver.remove(id, signal)));
      expect((await driver.list()).filter((id) => many.some((each) => each.id === id))).toEqual([]);
    });

    it('handles calls for one id in order', async () => {
      const desired = balancer(three());
      await driver.apply(desired, signal);
      const members = Array.from({ length: 10 }, (_, at) => member(8100 + at));
      await Promise.all(members.map((each) => driver.apply(withPool(desired, { members: [each] }), signal)));
      expect([...(await readingOf(desired.id))!.members.keys()]).toEqual([members.at(-1)!.id]);
    });

    it('converges after a crash of its process', async () => {
      const [kept, removed] = [balancer(three()), balancer(three())];
      await driver.apply(kept, signal);
      await driver.apply(removed, signal);
      driver = await subject.crash();
      await driver.start();
      await driver.apply(kept, signal);
      expect(await effectOfApply(kept)).toEqual(noEffect);
      await driver.remove(removed.id, signal);
      const ids = await driver.list();
      expect(ids).toContain(kept.id);
      expect(ids).not.toContain(removed.id);
    });

    it('does nothing for an aborted call', async () => {
      const desired = balancer(three());
      await expect(driver.apply(desired, AbortSignal.abort())).rejects.toMatchObject({ retryable: true });
      expect(await driver.list()).not.toContain(desired.id);
    });
  });
}
