import { describe, expect, it } from 'vitest';
import { createFlow, createRequestSlots, listCost, readCost, requestCost } from './request-slots.ts';
import type { Flow } from './request-slots.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Slots on a clock that the test holds, for a pool of 8. */
function openSlots() {
  let time = 0;
  const slots = createRequestSlots(8, () => time);
  const served: Flow[] = [];
  const running: { flow: Flow; cost: number }[] = [];
  const start = (flow: Flow, cost: number) => {
    served.push(flow);
    running.push({ flow, cost });
  };
  return {
    slots,
    served,
    running,
    /** Returns the withdrawal of a request that waits. */
    ask(flow: Flow, cost = requestCost) {
      if (slots.tryStart(flow, cost)) return start(flow, cost);
      return slots.wait(flow, cost, () => start(flow, cost));
    },
    async endFirst(of?: Flow) {
      const [ended] = running.splice(
        running.findIndex(({ flow }) => !of || flow === of),
        1,
      );
      slots.end(ended!.flow, ended!.cost);
      await turn();
    },
    pass: (ms: number) => void (time += ms),
    runningOf: (flow: Flow) => running.filter((one) => one.flow === flow).length,
  };
}

describe('slots of requests', () => {
  it.each([
    [requestCost, 6],
    [listCost, 3],
    [readCost, 48],
  ])('leave a quarter of the pool free while one client floods it (requests of %i: %i run)', (cost, most) => {
    const { ask, slots, runningOf } = openSlots();
    const flood = createFlow(1);
    for (let i = 0; i < 64; i++) ask(flood, cost);
    expect(runningOf(flood)).toBe(most);
    expect(slots.counts().waiting).toBe(64 - most);
  });

  it.each([requestCost, listCost, readCost])('start every request (%i) of another client at once', async (cost) => {
    const { ask, running, endFirst } = openSlots();
    const [flood, victim] = [createFlow(1), createFlow(1)];
    for (let i = 0; i < 64; i++) ask(flood);
    for (let i = 0; i < 20; i++) {
      ask(victim, cost);
      expect(running.at(-1)!.flow).toBe(victim);
      await endFirst(flood);
      ask(flood);
      await endFirst(victim);
    }
  });

  it('shrink a flood while others are there, and let it grow when they are gone', async () => {
    const { ask, slots, endFirst, runningOf, pass } = openSlots();
    const [flood, victim] = [createFlow(1), createFlow(1)];
    for (let i = 0; i < 64; i++) ask(flood);
    ask(victim);
    for (let i = 0; i < 8; i++) await endFirst(flood);
    expect(runningOf(flood)).toBe(1);
    await endFirst(victim);
    expect(runningOf(flood)).toBe(2);
    pass(2000);
    await endFirst(flood);
    expect(runningOf(flood)).toBe(6);
    expect(slots.counts().running).toBe(6);
  });

  it.each([
    [1, 1],
    [3, 1],
    [1, 5],
  ])('serve two floods of weights %i and %i in that proportion', async (a, b) => {
    const { ask, served, endFirst } = openSlots();
    const [first, second] = [createFlow(a), createFlow(b)];
    for (const flow of [first, second]) for (let i = 0; i < 64; i++) ask(flow);
    for (let i = 0; i < 6; i++) await endFirst();
    served.length = 0;
    for (let i = 0; i < 600; i++) {
      await endFirst();
      ask(first);
      ask(second);
    }
    const ratio = served.filter((flow) => flow === first).length / served.filter((flow) => flow === second).length;
    expect(ratio / (a / b)).toBeGreaterThan(0.9);
    expect(ratio / (a / b)).toBeLessThan(1.1);
  });

  it('do not stop for clients whose requests hang', async () => {
    const { ask, endFirst, runningOf, served } = openSlots();
    const hanging = Array.from({ length: 20 }, () => createFlow(1));
    const other = createFlow(1);
    for (const flow of hanging) for (let i = 0; i < 64; i++) ask(flow);
    for (let i = 0; i < 10; i++) ask(other, listCost);
    for (let i = 0; i < 10; i++) await endFirst(other);
    expect(served.filter((flow) => flow === other)).toHaveLength(10);
    expect(hanging.map(runningOf).every((count) => count > 0)).toBe(true);
  });

  it('forget what is withdrawn', async () => {
    const { ask, slots, endFirst, served } = openSlots();
    const flow = createFlow(1);
    const withdrawals = Array.from({ length: 20 }, () => ask(flow));
    for (const withdraw of withdrawals) withdraw?.();
    for (let i = 0; i < 6; i++) await endFirst();
    expect(served).toHaveLength(6);
    expect(slots.counts()).toEqual({ running: 0, waiting: 0 });
  });
});
