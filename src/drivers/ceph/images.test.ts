import { expect, it } from 'vitest';
import type { CephBridge } from './bridge.ts';
import { imagesOf } from './images.ts';

it('a long call waits for a thread before its time limit begins', async () => {
  const called: PromiseWithResolvers<void>[] = [];
  const call = () => {
    const response = Promise.withResolvers<void>();
    called.push(response);
    return response.promise;
  };
  const images = imagesOf({ call } as unknown as CephBridge, 'volumes');
  const copies = Array.from({ length: 9 }, (_, i) => images.flatten(`image-${i}`, () => undefined));
  expect(called).toHaveLength(8);
  called[0]!.resolve();
  await expect.poll(() => called.length).toBe(9);
  for (const { resolve } of called) resolve();
  await Promise.all(copies);
});
