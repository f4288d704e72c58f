import { expect, it } from 'vitest';
import type { CephBridge } from './bridge.ts';
import { imagesOf } from './images.ts';

it('long calls wait for a thread before their time limit begins, and clients take turns', async () => {
  const called: { name: string; resolve: () => void }[] = [];
  const call = (_operation: string, { name }: { name: string }) =>
    new Promise<void>((resolve) => called.push({ name, resolve }));
  const images = imagesOf({ call } as unknown as CephBridge, 'volumes');
  const begun = (name: string) => called.some((each) => each.name === name);
  const ofOne = Array.from({ length: 20 }, (_, i) => images.flatten(1, `one-${i}`, () => undefined));
  const ofOther = ['other-0', 'other-1', 'other-2'].map((name) => images.rollBack(2, name, 'snapshot'));
  await expect.poll(() => called.length).toBe(8);
  expect(begun('other-1')).toBe(true);
  called[0]!.resolve();
  await expect.poll(() => called.length).toBe(9);
  called[1]!.resolve();
  await expect.poll(() => begun('other-2')).toBe(true);
  await expect.poll(() => (called.forEach(({ resolve }) => resolve()), called.length)).toBe(23);
  await Promise.all([...ofOne, ...ofOther]);
});
