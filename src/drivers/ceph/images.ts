/** Typed calls of bridge.py for RBD images and for the objects of a pool. */
import { limited } from '../../platform/turns.ts';
import type { Progress } from '../volume.ts';
import type { CallOptions, CephBridge } from './bridge.ts';

export interface Image {
  /** Stays the same when the image is renamed or moved to the trash. */
  id: string;
  name: string;
  sizeBytes: number;
  /** Names of its snapshots, without those that only clones still need. */
  snapshots: Set<string>;
  /** The image that it shares data with; null: none. */
  parent: { pool: string; id: string } | null;
}

type OnProgress = (progress: Progress) => void;

export interface Images {
  /** Names of all images of the pool, also of those that are not volumes. */
  list(): Promise<string[]>;
  /** Null: it does not exist. */
  find(image: { name: string } | { id: string }): Promise<Image | null>;
  create(name: string, sizeBytes: number): Promise<void>;
  clone(parent: string, snapshot: string, name: string): Promise<void>;
  /** Never shrinks. */
  grow(name: string, sizeBytes: number): Promise<void>;
  rename(name: string, to: string): Promise<void>;
  /** Completes a rename whose process died: both names open the image. */
  finishRename(name: string, to: string, id: string): Promise<void>;
  /** The bindings do not report its progress. */
  rollBack(name: string, snapshot: string): Promise<void>;
  flatten(name: string, onProgress: OnProgress): Promise<void>;
  /** Takes a moment, also if clients use it. Resolves also if it does not exist. */
  moveToTrash(name: string): Promise<void>;
  trash(): Promise<{ id: string; name: string }[]>;
  /**
   * Deletes an image in the trash with its data; false: clones need a snapshot of it. Only one client at a time may do so: librbd
   * aborts the process whose image another one deletes.
   */
  purge(id: string): Promise<boolean>;
  /** Has the OSD read again which clients use an image. Those that died count for 30 s more. */
  reload(id: string): Promise<void>;
  trashLock: {
    /** Takes the lock or renews it; false: another client or cookie has it. */
    acquire(cookie: string, seconds: number): Promise<boolean>;
    release(cookie: string): Promise<void>;
  };
  /** Resolves also if it exists. */
  createSnapshot(name: string, snapshot: string): Promise<void>;
  /** Resolves also if it does not exist. */
  removeSnapshot(id: string, snapshot: string): Promise<void>;
  renameSnapshot(id: string, snapshot: string, to: string): Promise<void>;
  /** Pairs in an object of the pool. */
  pairs: {
    get(object: string, keys?: string[]): Promise<Map<string, string>>;
    set(object: string, pairs: Record<string, string>): Promise<void>;
    remove(object: string, key: string): Promise<void>;
  };
}

/** Long calls report progress at least this often, or have stopped. */
const STALL_SECONDS = 120;
/**
 * A rollback and the removal of many objects report no progress, so they have no limit. A call that was abandoned and made again
 * would run twice. Ceph ends their operations while the cluster is away, and they end with their process.
 */
const UNLIMITED: CallOptions = { timeoutSeconds: null };
/** The threads of bridge.py for long calls. A call that waited for one there would count as stopped. */
const LONG_THREADS = 8;

const TRASH_LOCK = { object: 'cloudyard.trash', lock: 'cloudyard' };

/** The calls for one pool. All of them reject with a DriverError. */
export function imagesOf(bridge: CephBridge, pool: string): Images {
  const call = <Result>(operation: string, args: Record<string, unknown> = {}) =>
    bridge.call<Result>(operation, { pool, ...args });
  const inTurn = limited(LONG_THREADS);
  const long = <Result>(operation: string, args: Record<string, unknown>, options: CallOptions) =>
    inTurn(() => bridge.call<Result>(operation, { pool, ...args }, options));
  return {
    list: () => call('image.list'),
    async find(image) {
      const found = await call<FoundImage | null>('image.stat', image);
      if (!found) return null;
      const { id, name, size, parent, snapshots } = found;
      return { id, name, parent, sizeBytes: size, snapshots: new Set(snapshots) };
    },
    create: (name, size) => call('image.create', { name, size }),
    clone: (parent, snapshot, name) => call('image.clone', { parent, snapshot, name }),
    grow: (name, size) => call('image.grow', { name, size }),
    rename: (name, to) => call('image.rename', { name, to }),
    finishRename: (name, to, id) => call('image.finish_rename', { name, to, id }),
    rollBack: (name, snapshot) => long('image.rollback', { name, snapshot }, UNLIMITED),
    flatten: (name, onProgress) => long('image.flatten', { name }, { timeoutSeconds: STALL_SECONDS, onProgress }),
    moveToTrash: (name) => call('image.trash', { name }),
    trash: () => call('trash.list'),
    purge: (id) => long('trash.remove', { id }, UNLIMITED),
    reload: (id) => call('trash.reload', { id }),
    trashLock: {
      acquire: (cookie, seconds) => call('lock.acquire', { ...TRASH_LOCK, cookie, seconds }),
      release: (cookie) => call('lock.release', { ...TRASH_LOCK, cookie }),
    },
    createSnapshot: async (name, snapshot) => void (await call('snapshot.create', { name, snapshot })),
    removeSnapshot: (id, snapshot) => call('snapshot.remove', { id, snapshot }),
    renameSnapshot: (id, snapshot, to) => call('snapshot.rename', { id, snapshot, to }),
    pairs: {
      async get(object, keys) {
        return new Map(Object.entries(await call<Record<string, string>>('omap.get', { object, keys: keys ?? null })));
      },
      set: (object, pairs) => call('omap.set', { object, pairs }),
      remove: (object, key) => call('omap.remove', { object, keys: [key] }),
    },
  };
}

interface FoundImage extends Pick<Image, 'id' | 'name' | 'parent'> {
  size: number;
  snapshots: string[];
}
