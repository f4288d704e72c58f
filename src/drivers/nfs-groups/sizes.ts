/**
 * Sizes of the exports of a group. The worker changes the quota of a share in CephFS, which notifies Ganesha some time later.
 * Until then clients cannot write beyond the old size. So a change of the size is done when the export shows the new one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError } from '../driver.ts';
import type { PublishedShare } from './share-state.ts';
import type { Tenure } from './tenure.ts';

const GIB = 1024 ** 3;
const WAIT_MS = 10_000;
const POLL_MS = 50;

type Shares = ReadonlyMap<string, PublishedShare>;

/** The sizes that the exports must show, GiB. */
export function sizesOf(shares: Shares): Map<string, number> {
  return new Map([...shares].map(([id, { sizeGib }]) => [id, sizeGib ?? 0]));
}

/** Notes the sizes of those exports that have not shown theirs before. */
export async function noteSizes({ server, sizes }: Tenure, shares: Shares): Promise<void> {
  const wanted = [...sizesOf(shares)].filter(([id, size]) => (sizes.get(id) ?? 0) < size).map(([id]) => id);
  const shown = await server.sizes(wanted).catch(() => new Map<string, number>());
  for (const [id, bytes] of shown) sizes.set(id, Math.floor(bytes / GIB));
}

/**
 * Resolves when the export of a share shows its size, or when the tenure has ended: the next server reads the quota at its start.
 * Returns whether it had to wait. @throws DriverError if it does not show it in time
 */
export async function untilSizeShown(tenure: Tenure, id: string, share: PublishedShare): Promise<boolean> {
  const deadline = performance.now() + WAIT_MS;
  const isShown = () => (tenure.sizes.get(id) ?? 0) >= (share.sizeGib ?? 0);
  if (isShown()) return false;
  for (;;) {
    await noteSizes(tenure, new Map([[id, share]]));
    if (isShown() || tenure.hasEnded()) return true;
    if (performance.now() > deadline) throw notShown(id, share, tenure.sizes.get(id));
    await sleep(POLL_MS);
  }
}

function notShown(id: string, { sizeGib }: PublishedShare, shownGib = 0): DriverError {
  return new DriverError(`the export of ${id} has ${sizeGib} GiB and shows ${shownGib} GiB`, {
    customerMessage: 'the file server does not show the new size of this share yet',
    retryable: true,
  });
}
