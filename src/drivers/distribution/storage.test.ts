/** Reads of large repositories beside the reads of other clients. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { linkedDigests } from './storage.ts';
import { newFolders } from './test-host.ts';
import { testStorage } from './test-storage.ts';

const links = 3000;

it('a scan of all links leaves threads for the files of other clients', async () => {
  const layout = await newFolders();
  const storage = testStorage(layout);
  for (let i = 0; i < links; i += 1) {
    await storage.link('app-1/a', 'layer', `sha256:${i.toString(16).padStart(64, '0')}`);
  }
  let isRead = false;
  const reading = linkedDigests({ name: 'a', folder: join(layout.repositories, 'app-1/a') }).finally(() => {
    isRead = true;
  });
  /** Of another client, one after the other. */
  let reads = 0;
  for (; !isRead; reads += 1) await stat(layout.root);
  expect(await reading).toHaveLength(links);
  // A read that waits for all of them makes less than ten.
  expect(reads).toBeGreaterThan(links / 50);
}, 60_000);
