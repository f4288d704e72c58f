import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { silentLogger } from '../../platform/log.ts';
import { limited } from '../../platform/turns.ts';
import { directoryStorage } from './directories.ts';
import { layoutOf, makeFolders } from './layout.ts';
import type { NfsServer } from './server.ts';
import { applyShare, findDamaged, type Shares } from './shares.ts';
import { exportIds } from './specs.ts';

it('a share that could not be served is still found when an apply fails', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-shares-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const layout = layoutOf(dataDir);
  await makeFolders(layout);
  const accepted = new Map<number, { pseudo: string }>();
  const server: NfsServer = {
    start: async () => undefined,
    reload: async () => ({ inForce: accepted, errors: [], readable: true }),
    isUp: () => true,
    isSilent: () => false,
    settings: () => ({ bindAddress: null, port: 2049, mountPort: 20048, version3: false }),
    stop: async () => undefined,
    release: async () => undefined,
  };
  const shares: Shares = {
    ...{ layout, host: '127.0.0.1', log: silentLogger, storage: directoryStorage(layout), server },
    ...{ preparing: limited(1), inPreparation: 0, specs: new Map(), numbers: exportIds([]) },
    ...{ confirmed: new Map(), broken: new Set(), unconfirmed: null },
  };
  const id = randomUUID();
  const apply = () =>
    applyShare(
      shares,
      { id, sizeGib: 1, settledGib: null, rootSquash: true, access: [] },
      new AbortController().signal,
    );
  accepted.set(1, { pseudo: `/shares/${id}` });
  await apply();
  shares.broken.add(id);
  accepted.clear();
  await expect(apply()).rejects.toThrow('did not accept the export');
  expect(await findDamaged(shares)).toEqual([id]);
  accepted.set(1, { pseudo: `/shares/${id}` });
  await apply();
  expect(await findDamaged(shares)).toEqual([]);
});
