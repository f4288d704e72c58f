import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { HostView, RegionView } from '../../hosts/part.ts';
import { silentLogger } from '../../platform/log.ts';
import { createHostRouters } from './host-routers.ts';

it('writes block files again when the disk was full, and its callers do not fail', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-routers-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  let isUp = true;
  const routers = createHostRouters({ folder, leaseCheck: 'check', health: { isUp: () => isUp }, log: silentLogger });
  const host: HostView = {
    ...{ name: 'a', address: '10.77.0.11', interface: 'lo', state: 'active', leaseValid: true, converged: true },
  };
  routers.setRegion({
    ...{ regionId: 1, vipRange: '10.77.1.0/24', vipRangeV6: null, storage: null, self: 'a', hosts: [host] },
    settings: { addressGroups: 2, virtualRouterId: 100, leaseSeconds: 3 },
  } as unknown as RegionView);
  await routers.configure();
  routers.setServing(true);
  const [first, second] = [0, 1].map((group) => join(folder, `addresses-${group}.block`)) as [string, string];
  const contents = () => [first, second].map((file) => readFileSync(file, 'utf8'));
  expect(contents()).toEqual(['0\n', '0\n']);

  rmSync(first);
  symlinkSync('/dev/full', first);
  isUp = false;
  routers.updateBlocks();
  expect(readFileSync(second, 'utf8')).toBe('1\n');
  await expect(routers.configure()).rejects.toMatchObject({ retryable: true });
  rmSync(first);
  await expect.poll(contents).toEqual(['1\n', '1\n']);
});
