/** Desired states for tests of drivers. */
import { randomUUID } from 'node:crypto';
import type { DesiredFileShare } from './file-share.ts';
import type { DesiredSnapshot, DesiredVolume } from './volume.ts';

export const fileShare = (changes: Partial<DesiredFileShare> = {}): DesiredFileShare => ({
  ...{ id: randomUUID(), sizeGib: 1, settledGib: null, rootSquash: true },
  access: [{ network: '127.0.0.1', mode: 'rw' }],
  ...changes,
});

export const volume = (changes: Partial<DesiredVolume> = {}): DesiredVolume => ({
  ...{ id: randomUUID(), clientId: 1, sizeGib: 1, settledGib: null, source: null, revertTo: null },
  ...changes,
});

export const snapshot = (volumeId: string, changes: Partial<DesiredSnapshot> = {}): DesiredSnapshot => ({
  ...{ id: randomUUID(), clientId: 1, volumeId, settled: false },
  ...changes,
});
