/**
 * Stores volumes as RBD images named by their ids, and their snapshots as RBD snapshots. A volume from a snapshot is a clone
 * that shares the snapshot's data (copy on write) and keeps it when the snapshot or its volume is removed.
 *
 * Invariants:
 * - An image gets its final name when it is complete: it is created or cloned under a temporary name and renamed.
 * - A call whose process died may have done a part of its work. What a creation left goes to the trash before the next one, and
 *   the next `apply` completes a rename.
 * - An index in the pool names the image of each snapshot, because a snapshot is removed by its id alone. The entry is written
 *   before the snapshot exists and removed after it.
 * - A removed volume goes to the trash, which never fails because of clones; its data is deleted in the background when no
 *   clone shares it.
 *
 * Failure modes: a volume or snapshot that was created and is missing is an error; it is never created again. A client that
 * died keeps its watch of an image for 30 s or longer (trash.ts); until then the trash keeps the data (EBUSY, which is retried).
 */
import { refuseAborted } from '../command.ts';
import { DriverError } from '../driver.ts';
import { checkedId } from '../id-files.ts';
import type { DesiredSnapshot, DesiredVolume, ObservedSnapshot, ObservedVolume, Progress } from '../volume.ts';
import type { Image, Images } from './images.ts';
import type { LongCalls } from '../long-calls.ts';

export interface VolumeStore {
  images: Images;
  longCalls: LongCalls;
  /** A clone with as many ancestors shares no data: each of them would be read in turn. */
  maxAncestors: number;
}

/** The snapshot's image. */
interface SnapshotPlace {
  volumeId: string;
  imageId: string;
}

export const UNFINISHED = '.unfinished';
const GIB = 1024 ** 3;

const imageName = (volumeId: string): string => checkedId(volumeId, 'a volume');
const snapshotName = (id: string): string => `snapshot.${checkedId(id, 'a snapshot')}`;

/**
 * Creates, grows or reverts a volume. @throws DriverError: permanent if its data or the snapshot is missing, and retryable while
 * the cluster does not respond
 */
export async function applyVolume(
  store: VolumeStore,
  desired: DesiredVolume,
  signal: AbortSignal,
): Promise<ObservedVolume> {
  refuseAborted(signal);
  const { images } = store;
  const name = imageName(desired.id);
  const before = await images.find({ name });
  const bytes = Math.max(desired.sizeGib * GIB, before?.sizeBytes ?? 0);
  const sizeGib = Math.floor(bytes / GIB);
  if (desired.revertTo !== null) {
    if (!(await revert(store, desired, before, signal))) return copying(store, desired.id);
    await images.grow(name, bytes);
    return { copying: false, sizeGib };
  }
  // A smaller image has lost data; extending it would replace the lost data with zeros.
  if ((before?.sizeBytes ?? 0) < (desired.settledGib ?? 0) * GIB) throw dataMissing('volume', name);
  if (before) {
    if (desired.settledGib === null) await finishRename(images, name, before);
    if (before.sizeBytes < bytes) await images.grow(name, bytes);
  } else if (!(await create(store, desired, bytes, signal))) return copying(store, desired.id);
  return { copying: false, sizeGib };
}

/** Creates a snapshot, which takes a moment. @throws DriverError, permanent if it was created before and is missing */
export async function applySnapshot(
  { images }: VolumeStore,
  desired: DesiredSnapshot,
  signal: AbortSignal,
): Promise<ObservedSnapshot> {
  refuseAborted(signal);
  const [volume, snapshot] = [imageName(desired.volumeId), snapshotName(desired.id)];
  if (await imageWith(images, desired.id)) return { copying: false };
  if (desired.settled) throw dataMissing('snapshot', snapshot);
  const image = await images.find({ name: volume });
  // Retryable, because the volume may follow: resources of a simulated host become real in any order.
  if (!image) throw dataMissing('volume', volume, { retryable: true });
  await writePlace(images, desired.id, { volumeId: desired.volumeId, imageId: image.id });
  await images.createSnapshot(volume, snapshot);
  return { copying: false };
}

/** Moves the image to the trash, which trash.ts empties. @throws DriverError, retryable, while a copy writes to it */
export async function removeVolume({ images, longCalls }: VolumeStore, id: string): Promise<void> {
  const name = imageName(id);
  if (longCalls.isRunning(id)) throw stillCopying(name);
  longCalls.forget(id);
  await images.moveToTrash(`${name}${UNFINISHED}`);
  await images.moveToTrash(name);
}

/** Also if clones share its data: Ceph keeps that for them. */
export async function removeSnapshot({ images }: VolumeStore, id: string): Promise<void> {
  const snapshot = snapshotName(id);
  const place = await readPlace(images, id);
  if (!place) return;
  await images.removeSnapshot(place.imageId, snapshot);
  await images.index.remove(id);
}

/** Renames the image, so that its snapshots and clones stay as they are. */
export async function quarantineVolume({ images, longCalls }: VolumeStore, id: string): Promise<void> {
  const name = imageName(id);
  if (longCalls.isRunning(id)) throw stillCopying(name);
  longCalls.forget(id);
  if (await images.find({ name })) await images.rename(name, quarantined(name));
}

/** Renames the snapshot, and frees its id. */
export async function quarantineSnapshot({ images }: VolumeStore, id: string): Promise<void> {
  const snapshot = snapshotName(id);
  const image = await imageWith(images, id);
  if (image) await images.renameSnapshot(image.id, snapshot, quarantined(snapshot));
  await images.index.remove(id);
}

/** Returns whether the revert is complete. */
async function revert(
  { images, longCalls }: VolumeStore,
  { id, clientId, revertTo }: DesiredVolume,
  image: Image | null,
  signal: AbortSignal,
): Promise<boolean> {
  const snapshot = snapshotName(revertTo!);
  const found = await imageWith(images, revertTo!);
  if (!image || found?.id !== image.id) throw dataMissing('snapshot', snapshot);
  const rollBack = () => images.rollBack(clientId, imageName(id), snapshot);
  return longCalls.run(id, `revert to ${revertTo}`, rollBack, signal);
}

/** Creates the image, empty or as a clone. Returns whether it is complete. */
async function create(
  store: VolumeStore,
  desired: DesiredVolume,
  bytes: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { images, longCalls } = store;
  const name = imageName(desired.id);
  const unfinished = `${name}${UNFINISHED}`;
  let deep = longCalls.has(desired.id);
  if (!deep) {
    const make = desired.source === null ? null : await cloneOf(store, desired.source);
    await images.moveToTrash(unfinished);
    await (make?.clone(unfinished) ?? images.create(unfinished, bytes));
    await images.grow(unfinished, bytes);
    deep = make?.deep ?? false;
  }
  const flatten = (onProgress: (progress: Progress) => void) =>
    images.flatten(desired.clientId, unfinished, onProgress);
  if (deep && !(await longCalls.run(desired.id, 'flatten', flatten, signal))) return false;
  refuseAborted(signal);
  await images.rename(unfinished, name);
  return true;
}

/** An image that has its final name may have its temporary one, too. */
async function finishRename(images: Images, name: string, image: Image): Promise<void> {
  const unfinished = `${name}${UNFINISHED}`;
  const left = await images.find({ name: unfinished });
  if (left?.id === image.id) await images.finishRename(unfinished, name, image.id);
  await images.moveToTrash(unfinished);
}

async function cloneOf({ images, maxAncestors }: VolumeStore, source: string) {
  const snapshot = snapshotName(source);
  const image = await imageWith(images, source);
  if (!image) throw dataMissing('snapshot', snapshot);
  return {
    deep: (await ancestorsOf(images, image)) >= maxAncestors,
    clone: (name: string) => images.clone(image.name, snapshot, name),
  };
}

async function ancestorsOf(images: Images, image: Image): Promise<number> {
  let ancestors = 0;
  for (let parent = image.parent; parent; ancestors += 1) {
    parent = (await images.find({ id: parent.id }))?.parent ?? null;
  }
  return ancestors;
}

/** The image that has the snapshot; null: it does not exist. */
async function imageWith(images: Images, id: string): Promise<Image | null> {
  const place = await readPlace(images, id);
  const image = place && (await images.find({ id: place.imageId }));
  return image?.snapshots.has(snapshotName(id)) ? image : null;
}

async function readPlace(images: Images, id: string): Promise<SnapshotPlace | null> {
  const text = (await images.index.get([checkedId(id, 'a snapshot')])).get(id);
  return text === undefined ? null : (JSON.parse(text) as SnapshotPlace);
}

async function writePlace(images: Images, id: string, place: SnapshotPlace): Promise<void> {
  await images.index.set(id, JSON.stringify(place));
}

function copying({ longCalls }: VolumeStore, id: string) {
  return { copying: true as const, progress: longCalls.progress(id) };
}

/** A name that is not that of a volume, and that nothing else has. */
const quarantined = (name: string): string => `quarantine.${Date.now()}.${name}`;

function stillCopying(name: string): DriverError {
  return new DriverError(`the image ${name} is being changed`, {
    customerMessage: 'the volume is being copied',
    retryable: true,
  });
}

function dataMissing(what: 'volume' | 'snapshot', name: string, { retryable } = { retryable: false }): DriverError {
  return new DriverError(`the data of a ${what} is missing: ${name} does not exist in the pool or is incomplete`, {
    customerMessage: `the data of this ${what} is missing in the storage cluster; ask the operator`,
    retryable,
  });
}
