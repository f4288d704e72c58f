/** The memory of garbage collection: clients decide how many layers their manifests name, and may name layers that are not stored. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { collect } from './collect.ts';
import { createDamage } from './damage.ts';
import { newFolders } from './test-host.ts';
import { testStorage } from './test-storage.ts';

setFlagsFromString('--expose-gc');
const collectHeap = runInNewContext('gc') as () => void;
const heapMib = () => {
  collectHeap();
  return process.memoryUsage().heapUsed / 1024 ** 2;
};

const manifests = 8;
/** In 4 MiB, the largest manifest that distribution accepts. */
const layersOfEach = 30_000;

/** A manifest with foreign layers (`urls`), which distribution accepts without their blobs. */
function foreignManifest(i: number): string {
  const layers = Array.from({ length: layersOfEach }, (_, j) => {
    const digest = `sha256:${`${i}f${j}`.padStart(64, '0')}`;
    return { digest, size: 1, urls: ['https://example.com/'] };
  });
  return JSON.stringify({ schemaVersion: 2, layers });
}

it('does not grow with the layers that manifests name', async () => {
  const layout = await newFolders();
  const storage = testStorage(layout);
  for (let i = 0; i < manifests; i += 1) {
    await storage.link('app-1/a', 'manifest', await storage.blob(foreignManifest(i)));
  }
  // Its link is removed, under a hold, after all manifests were read.
  await storage.layer('app-1/a', 'unused');
  await storage.age();
  const before = heapMib();
  let grownBy = Number.NaN;
  const requestHold = async () => {
    grownBy = heapMib() - before;
    return null;
  };
  const options = { layout, requestHold, patience: 60, log: silentLogger, damage: createDamage(silentLogger) };
  const [found] = await collect({ ...options, signal: new AbortController().signal });
  expect(found!.repositories[0]!.manifests).toHaveLength(manifests);
  expect(grownBy).toBeLessThan(5);
}, 60_000);
