/** The checker on histories whose verdict is known. */
import { describe, expect, it } from 'vitest';
import { check, type Operation, type Specification } from './checker.ts';

type Input = { write: number } | 'read';
/** A register that holds a number. */
const register: Specification<number, Input, number> = {
  initial: 0,
  step(state, input, output) {
    if (input !== 'read') return [input.write];
    return output === null || output === state ? [state] : [];
  },
  keyOf: String,
};

const write = (value: number, called: number, returned: number): Operation<Input, number> => ({
  input: { write: value },
  output: value,
  called,
  returned,
});
const read = (output: number, called: number, returned: number): Operation<Input, number> => ({
  input: 'read',
  output,
  called,
  returned,
});
const lost = (value: number, called: number): Operation<Input, number> => ({
  input: { write: value },
  output: null,
  called,
  returned: called,
});

describe('linearizable', () => {
  it.each([
    ['no operation', []],
    ['one after another', [write(1, 0, 1), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7)]],
    ['a read during a write sees the old value', [write(1, 0, 10), read(0, 1, 2)]],
    ['a read during a write sees the new value', [write(1, 0, 10), read(1, 1, 2)]],
    ['two writes at once take effect in either order', [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12)]],
    ['overlapping reads see a write one after the other', [write(1, 0, 10), read(0, 1, 3), read(1, 2, 9)]],
    ['a write without a response has no effect', [lost(1, 0), read(0, 1, 2), read(0, 5, 6)]],
    ['a write without a response has an effect later', [lost(1, 0), read(0, 1, 2), read(1, 5, 6)]],
  ])('%s', (_, history) => {
    expect(check(register, history)).toEqual({ linearizable: true });
  });
});

describe('not linearizable', () => {
  it.each([
    ['a read of a value that was never written', [write(1, 0, 1), read(2, 2, 3)]],
    ['a stale read', [write(1, 0, 1), read(0, 2, 3)]],
    ['a value that returns', [write(1, 0, 1), write(2, 2, 3), read(2, 4, 5), read(1, 6, 7)]],
    [
      'two readers that see two writes in different orders',
      [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12), read(2, 13, 14)],
    ],
    ['a new value, then the old one, during a write', [write(1, 0, 10), read(1, 1, 3), read(0, 4, 6)]],
    ['a lost write that is seen and then gone', [lost(1, 0), read(1, 1, 2), read(0, 3, 4)]],
  ])('%s', (_, history) => {
    expect(check(register, history)).toMatchObject({ linearizable: false });
  });

  it('the verdict names the operations that cannot follow', () => {
    expect(check(register, [write(1, 0, 1), read(0, 2, 3)])).toEqual({
      linearizable: false,
      explained: [0],
      stuck: [1],
    });
  });
});

it('decides 160 operations of 8 clients, which memoization makes possible', () => {
  const history = Array.from({ length: 160 }, (_, i) =>
    write(i % 3, Math.floor(i / 8) * 10, Math.floor(i / 8) * 10 + 9),
  );
  expect(check(register, [...history, read(5, 600, 601)])).toMatchObject({ linearizable: false });
});
