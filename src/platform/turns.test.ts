import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { joined, limited, oneAtATime, shared, takeBatch } from './turns.ts';

describe('turns', () => {
  it('never exceeds its concurrency, and continues after a failure', async () => {
    const turn = limited(2);
    let [now, most] = [0, 0];
    const work = async (fail: boolean) => {
      most = Math.max(most, ++now);
      await nextTurn();
      now -= 1;
      if (fail) throw new Error('failed');
    };
    const results = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => turn(() => work(n === 2))));
    expect(results.map(({ status }) => status === 'fulfilled')).toEqual([true, false, true, true, true]);
    expect(most).toBe(2);
  });

  it('keeps the order of one key and runs others meanwhile', async () => {
    const inTurn = oneAtATime();
    const done: string[] = [];
    const work = (name: string, turns: number) => async () => {
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
      done.push(name);
    };
    await Promise.all([inTurn('a', work('a1', 3)), inTurn('a', work('a2', 0)), inTurn('b', work('b', 0))]);
    expect(done).toEqual(['b', 'a1', 'a2']);
  });

  it('gives every caller a run that starts after its call, and shares it', async () => {
    let runs = 0;
    const run = shared(async () => {
      const mine = ++runs;
      await nextTurn();
      if (mine === 2) throw new Error('second');
      return mine;
    });
    const first = run();
    await Promise.resolve().then(() => Promise.resolve());
    const later = await Promise.allSettled([run(), run()]);
    expect(await first).toBe(1);
    expect(later.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await run()).toBe(3);
  });

  it('gives callers that arrive during a run its result', async () => {
    let runs = 0;
    const run = joined(async () => {
      const mine = ++runs;
      await nextTurn();
      return mine;
    });
    expect(await Promise.all([run(), run()])).toEqual([1, 1]);
    expect(await run()).toBe(2);
  });
});

it('a batch has one element of each key, and the others stay in their order', () => {
  const queue = ['a1', 'a2', 'b1', 'c1', 'a3', 'b2'];
  expect(takeBatch(queue, (element) => element[0]!, 2)).toEqual(['a1', 'b1']);
  expect(queue).toEqual(['a2', 'c1', 'a3', 'b2']);
});
