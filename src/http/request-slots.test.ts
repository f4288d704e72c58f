import { describe, expect, it } from 'vitest';
import { createFlow, createRequestSlots, type Flow, listCost, readCost, requestCost } from './request-slots.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Slots with a manual clock, for a pool of 8. Requests end 5 ms after each other. */
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
    /** Starts a request, or enqueues it and returns a function that withdraws it. */
    send(flow: Flow, cost = requestCost) {
      if (slots.tryStart(flow, cost)) return start(flow, cost);
      return slots.wait(
        flow,
        () => cost,
        () => start(flow, cost),
      );
    },
    async endFirst(of?: Flow) {
      const [ended] = running.splice(
        running.findIndex(({ flow }) => !of || flow === of),
        1,
      );
      time += 5;
      slots.end(ended!.flow, ended!.cost);
      await turn();
    },
    advance: (ms: number) => void (time += ms),
    runningOf: (flow: Flow) => running.filter((one) => one.flow === flow).length,
  };
}

describe('slots of requests', () => {
  it.each([
    [requestCost, 6],
    [listCost, 3],
    [readCost, 48],
  ])('leave a quarter of the pool free while one client floods it (requests of %i: %i run)', (cost, most) => {
    const { send, slots, runningOf } = openSlots();
    const flood = createFlow(1);
    for (let i = 0; i < 64; i++) send(flood, cost);
    expect(runningOf(flood)).toBe(most);
    expect(slots.counts().waiting).toBe(64 - most);
  });

  it.each([requestCost, listCost, readCost])('start every request (%i) of another client at once', async (cost) => {
    const { send, running, runningOf, endFirst } = openSlots();
    const [flood, victim] = [createFlow(1), createFlow(1)];
    for (let i = 0; i < 64; i++) send(flood, cost);
    for (let i = 0; i < 20; i++) {
      send(victim, cost);
      expect(running.at(-1)!.flow).toBe(victim);
      if (runningOf(flood) > 0) await endFirst(flood);
      send(flood, cost);
      await endFirst(victim);
    }
  });

  it('shrink a flood while another client is active, and let it grow again afterwards', async () => {
    const { send, slots, endFirst, runningOf, advance } = openSlots();
    const [flood, victim] = [createFlow(1), createFlow(1)];
    for (let i = 0; i < 64; i++) send(flood);
    send(victim);
    for (let i = 0; i < 5; i++) await endFirst(flood);
    expect(runningOf(flood)).toBe(1);
    await endFirst(victim);
    expect(runningOf(flood)).toBe(2);
    advance(2000);
    await endFirst(flood);
    expect(runningOf(flood)).toBe(6);
    expect(slots.counts().running).toBe(6);
  });

  it.each([
    [1, 1],
    [3, 1],
    [1, 5],
  ])('serve two floods of weights %i and %i in the proportion of the weights', async (a, b) => {
    const { send, served, endFirst } = openSlots();
    const [first, second] = [createFlow(a), createFlow(b)];
    for (const flow of [first, second]) for (let i = 0; i < 64; i++) send(flow);
    for (let i = 0; i < 6; i++) await endFirst();
    served.length = 0;
    for (let i = 0; i < 600; i++) {
      await endFirst();
      send(first);
      send(second);
    }
    const ratio = served.filter((flow) => flow === first).length / served.filter((flow) => flow === second).length;
    expect(ratio / (a / b)).toBeGreaterThan(0.9);
    expect(ratio / (a / b)).toBeLessThan(1.1);
  });

  it('do not stop for clients whose requests hang', async () => {
    const { send, endFirst, runningOf, served, advance } = openSlots();
    const hanging = Array.from({ length: 20 }, () => createFlow(1));
    const other = createFlow(1);
    for (const flow of hanging) for (let i = 0; i < 64; i++) send(flow);
    advance(100);
    for (let i = 0; i < 10; i++) send(other, listCost);
    for (let i = 0; i < 10; i++) await endFirst(other);
    expect(served.filter((flow) => flow === other)).toHaveLength(10);
    expect(hanging.map(runningOf).every((count) => count > 0)).toBe(true);
  });

  it('make a flood yield to a client that uses less, for a bounded time', async () => {
    const { send, served, endFirst, runningOf } = openSlots();
    const [flood, victim] = [createFlow(1), createFlow(1)];
    for (let i = 0; i < 200; i++) send(flood, listCost);
    for (let i = 0; i < 2; i++) send(victim, readCost);
    while (runningOf(flood) > 0) await endFirst(flood);
    served.length = 0;
    for (let i = 0; i < 50; i++) {
      await endFirst(victim);
      send(victim, readCost);
      if (runningOf(flood) > 0) await endFirst(flood);
    }
    const lists = served.filter((flow) => flow === flood).length;
    expect(lists).toBeGreaterThan(10);
    expect(lists).toBeLessThan(25);
  });

  it('let a client that uses less than the others run more than its share', () => {
    const { send, runningOf } = openSlots();
    const [flood, victim] = [createFlow(1), createFlow(1)];
    for (let i = 0; i < 64; i++) send(flood, listCost);
    for (let i = 0; i < 3; i++) send(victim);
    expect(runningOf(victim)).toBe(3);
  });

  it('have the cost that requests have when they start, not when they arrive', async () => {
    const { slots, send, endFirst } = openSlots();
    const flood = createFlow(1);
    let cost = readCost;
    const costs: number[] = [];
    for (let i = 0; i < 48; i++) send(flood, readCost);
    for (let i = 0; i < 64; i++)
      slots.wait(
        flood,
        () => cost,
        (started) => costs.push(started),
      );
    cost = requestCost;
    for (let i = 0; i < 48; i++) await endFirst(flood);
    expect(costs).toEqual(Array.from({ length: 6 }, () => requestCost));
  });

  it('do not start withdrawn requests', async () => {
    const { send, slots, endFirst, served } = openSlots();
    const flow = createFlow(1);
    const withdrawals = Array.from({ length: 20 }, () => send(flow));
    for (const withdraw of withdrawals) withdraw?.();
    for (let i = 0; i < 6; i++) await endFirst();
    expect(served).toHaveLength(6);
    expect(slots.counts()).toEqual({ running: 0, waiting: 0 });
  });
});
