import { expect, it } from 'vitest';
import { createLongCalls } from './long-calls.ts';

const { signal } = new AbortController();

it('a call whose result no caller has got does not count as running after its end', async () => {
  const calls = createLongCalls(0);
  const copy = Promise.withResolvers<void>();
  expect(await calls.run('volume', 'flatten', () => copy.promise, signal)).toBe(false);
  expect(calls.isRunning('volume')).toBe(true);
  calls.forget('volume');
  expect(calls.has('volume')).toBe(true);
  copy.reject(new Error('the connection ended'));
  await expect.poll(() => calls.isRunning('volume')).toBe(false);
  expect(calls.has('volume')).toBe(true);
  calls.forget('volume');
  expect(calls.has('volume')).toBe(false);
});
