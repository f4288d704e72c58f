/** A full disk and a killed check: the change fails as retryable, and everything else continues. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import type { DesiredLoadBalancer } from '../load-balancer.ts';
import type { HaproxyDriver } from './driver.ts';
import { balancer, listener, member, pool, testHost, type TestHost } from './test-host.ts';
import { ask, closeMembers, httpMember } from './test-members.ts';

const signal = new AbortController().signal;

describe.skipIf(!requires('haproxy', 'root'))(skipReason('haproxy', 'root') ?? 'HAProxy that cannot be changed', () => {
  let host: TestHost;
  let driver: HaproxyDriver;
  const filler = () => join(host.layout.configuration, 'filler');
  const fill = () => expect(() => writeFileSync(filler(), Buffer.alloc(2 ** 20))).toThrow(/ENOSPC/);
  const free = () => rmSync(filler());
  const apply = (desired: DesiredLoadBalancer) => driver.apply(desired, signal);
  const served = async () => balancer({ members: [member((await httpMember('first')).port)] });
  const grown = async (desired: DesiredLoadBalancer): Promise<DesiredLoadBalancer> => {
    const second = pool({ members: [member((await httpMember('second')).port)] });
    const front = listener({ port: 81, defaultPoolId: second.id });
    return { ...desired, listeners: [...desired.listeners, front], pools: [...desired.pools, second] };
  };
  const answerOf = async ({ address }: DesiredLoadBalancer, port = 80) => (await ask(address, {}, '/', port)).name;

  beforeEach(async () => {
    host = testHost();
    mkdirSync(host.layout.configuration, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', host.layout.configuration]);
    driver = host.driver();
    await driver.start();
  });
  afterEach(async () => {
    await closeMembers();
    await driver.stop();
    execFileSync('umount', ['-l', host.layout.configuration]);
    host.cleanUp();
  });

  it('keeps what it serves when the disk is full, serves other load balancers again, and is adopted by the next process', async () => {
    const [first, other] = [await served(), await served()];
    await apply(first);
    const pid = host.pid();
    fill();
    await expect(apply(await grown(first))).rejects.toMatchObject({ retryable: true, shortage: true });
    expect(await answerOf(first)).toBe('first');
    free();
    await apply(other);
    await driver.release();
    driver = host.driver();
    await driver.start();
    expect([host.pid(), await answerOf(first), await answerOf(other)]).toEqual([pid, 'first', 'first']);
    const last = await grown(first);
    await apply(last);
    expect([await answerOf(last), await answerOf(last, 81)]).toEqual(['first', 'second']);
  });

  it('does not take a killed check for a verdict', async () => {
    const desired = await served();
    await apply(desired);
    const haproxy = join(host.dataDir, 'killed-haproxy');
    writeFileSync(haproxy, '#!/bin/sh\nkill -9 $$\n', { mode: 0o755 });
    await driver.release();
    driver = host.driver({}, { haproxy });
    await driver.start();
    await expect(apply(await grown(desired))).rejects.toMatchObject({ retryable: true });
    expect(await answerOf(desired)).toBe('first');
  });
});
