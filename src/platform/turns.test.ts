import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { joined, limited, limitedByKey, oneAtATime, shared, takeBatch } from './turns.ts';

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

  describe('of keys', () => {
    /** Work that ends when the test says so. */
    const held = () => {
      const inTurn = limitedByKey<string>(4, 3);
      const started: string[] = [];
      const ends = new Map<string, () => void>();
      const start = (name: string, signal?: AbortSignal) => {
        const work = () => (started.push(name), new Promise<void>((resolve) => ends.set(name, resolve)));
        return inTurn(name[0]!, work, signal);
      };
      const end = async (name: string) => {
        ends.get(name)!();
        await nextTurn();
      };
      return { start, started, end };
    };

    it('never have more than their slots, and alternate', async () => {
      const { start, started, end } = held();
      const all = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'b3', 'c1'].map((name) => start(name));
      await nextTurn();
      expect(started).toEqual(['a1', 'a2', 'a3', 'b1']);
      for (const name of ['a1', 'a2', 'a3', 'b1', 'b2']) await end(name);
      expect(started.slice(4)).toEqual(['b2', 'c1', 'b3', 'a4', 'a5']);
      for (const name of ['c1', 'b3', 'a4', 'a5']) await end(name);
      await Promise.all(all);
    });

    it('alternate also in one slot, and continue after a failure', async () => {
      const inTurn = limitedByKey<string>(1);
      const started: string[] = [];
      const send = (key: string) =>
        inTurn(key, async () => {
          started.push(key);
          await nextTurn();
          if (started.length === 2) throw new Error('failed');
        });
      const results = await Promise.allSettled([...'aaaabbc'].map(send));
      expect(started.join('')).toBe('abcabaa');
      expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(1);
    });

    it('do not start work that is aborted before its turn', async () => {
      const { start, started, end } = held();
      const running = ['a1', 'a2', 'a3', 'b1'].map((name) => start(name));
      const aborting = new AbortController();
      const [aborted, next] = [start('c1', aborting.signal), start('c2')];
      await nextTurn();
      aborting.abort(new Error('not needed'));
      await expect(aborted).rejects.toThrow('not needed');
      await expect(start('c3', aborting.signal)).rejects.toThrow('not needed');
      for (const name of ['a1', 'a2', 'a3', 'b1', 'c2']) await end(name);
      expect(started).toEqual(['a1', 'a2', 'a3', 'b1', 'c2']);
      await Promise.all([...running, next]);
    });
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
