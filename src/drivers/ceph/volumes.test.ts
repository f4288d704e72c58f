import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Images } from './images.ts';
import { createLongCalls } from '../long-calls.ts';
import { quarantineVolume } from './volumes.ts';

it('a volume is not renamed while it is being reverted, and nothing of the revert is left for its id', async () => {
  const id = randomUUID();
  const names: string[] = [id];
  const images = {
    find: async ({ name }: { name: string }) => (names.includes(name) ? {} : null),
    rename: async (_name: string, to: string) => void names.splice(0, 1, to),
  } as unknown as Images;
  const longCalls = createLongCalls(0);
  const store = { images, longCalls, maxAncestors: 8 };
  const revert = Promise.withResolvers<void>();
  await longCalls.run(id, 'revert', () => revert.promise, new AbortController().signal);
  await expect(quarantineVolume(store, id)).rejects.toMatchObject({ retryable: true });
  expect(names).toEqual([id]);
  revert.resolve();
  await expect.poll(() => longCalls.isRunning(id)).toBe(false);
  await quarantineVolume(store, id);
  expect(names).toEqual([expect.stringMatching(new RegExp(`^quarantine\\..*${id}$`))]);
  expect(longCalls.has(id)).toBe(false);
});
