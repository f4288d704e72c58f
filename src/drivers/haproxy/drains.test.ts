/** Drains on a worker that a reload replaced. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { createDrains, type Drains } from './drains.ts';

const listOf = (ids: string[]) =>
  [
    '0x1: proto=unix_stream be=<NONE> srv=<none> age=0s',
    ...ids.map((id) => `${id}: proto=tcpv4 be=pool srv=goes age=9s`),
  ]
    .map((line) => `${line}\n`)
    .join('');

let drains: Drains | undefined;
afterEach(() => drains?.stop());

/** An old worker with the session `0x2` of a removed server. */
function startDrain(drainSeconds: number, more: { onStep?(): Promise<void>; show?(): string | null } = {}) {
  const world = { sessions: new Set(['0x2']), steps: 0 };
  const process = {
    ask: async () => '',
    async oldWorkers() {
      world.steps += 1;
      return [7];
    },
    async askOldWorker(_pid: number, commands: string[]) {
      if (commands[0] === 'show sess') return more.show?.() ?? listOf([...world.sessions]);
      for (const each of commands) world.sessions.delete(each.split(' ').at(-1)!);
      return '\n';
    },
  };
  process.ask = async () => (await more.onStep?.(), '');
  drains = createDrains(process, drainSeconds, silentLogger);
  drains.add('pool', 'goes', { kept: false });
  return world;
}

const isOver = async (world: { steps: number }) => {
  const before = world.steps;
  await sleep(1_500);
  return world.steps === before;
};

it('end after a step during which their deadline passed', async () => {
  // The first step begins after 50 ms.
  const world = startDrain(0.1, { onStep: () => sleep(100) });
  await expect.poll(() => world.sessions.size, { timeout: 10_000 }).toBe(0);
});

it('end after a worker that did not respond', async () => {
  let failures = 2;
  const world = startDrain(0.01, { show: () => (failures-- > 0 ? '' : null) });
  await expect.poll(() => world.sessions.size, { timeout: 10_000 }).toBe(0);
  await expect.poll(() => isOver(world), { timeout: 10_000 }).toBe(true);
});

it('end sessions that the first list did not have yet', async () => {
  const lists = ['0x2', '0x3'];
  const world = startDrain(0.01, {
    show: () => {
      const next = lists.shift();
      if (next) world.sessions.add(next);
      return null;
    },
  });
  await expect.poll(() => lists.length + world.sessions.size, { timeout: 10_000 }).toBe(0);
  await expect.poll(() => isOver(world), { timeout: 10_000 }).toBe(true);
});
