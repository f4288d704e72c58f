/** Typed calls of bridge.py for RBD images and for the objects of a pool. */
import { limitedByKey } from '../../platform/turns.ts';
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

/** Long calls report progress at least this often, or have stopped. */
const STALL_SECONDS = 120;
/**
 * A rollback and the removal of many objects report no progress, so they have no limit. A call that was abandoned and made again
 * would run twice. Ceph ends their operations while the cluster is away, and they end with their process.
 */
const UNLIMITED: CallOptions = { timeoutSeconds: null };
/** The threads of bridge.py for long calls. A call that waited for one there would count as stopped. */
const LONG_THREADS = 8;

/** The object of the pool that names the image of each snapshot. */
const INDEX = 'cloudyard.snapshots';
const TRASH_LOCK = { object: 'cloudyard.trash', lock: 'cloudyard' };

/** The calls for one pool. All of them reject with a DriverError. */
export function imagesOf(bridge: CephBridge, pool: string) {
  const call = <Result = void>(operation: string, args: Record<string, unknown> = {}, options?: CallOptions) =>
    bridge.call<Result>(operation, { pool, ...args }, options);
  const inTurn = limitedByKey<number | null>(LONG_THREADS);
  /** `clientId`: whose data it changes; null: of all clients. */
  const long = <Result = void>(
    clientId: number | null,
    operation: string,
    args: Record<string, unknown>,
    options: CallOptions,
  ) => inTurn(clientId, () => call<Result>(operation, args, options));
  return {
    /** Names of all images of the pool, also of those that are not volumes. */
    list: () => call<string[]>('image.list'),
    /** Null: it does not exist. */
    async find(image: { name: string } | { id: string }): Promise<Image | null> {
      const found = await call<FoundImage | null>('image.stat', image);
      if (!found) return null;
      const { id, name, size, parent, snapshots } = found;
      return { id, name, parent, sizeBytes: size, snapshots: new Set(snapshots) };
    },
    create: (name: string, size: number) => call('image.create', { name, size }),
    clone: (parent: string, snapshot: string, name: string) => call('image.clone', { parent, snapshot, name }),
    /** Never shrinks. */
    grow: (name: string, size: number) => call('image.grow', { name, size }),
    rename: (name: string, to: string) => call('image.rename', { name, to }),
    /** Completes a rename whose process died: both names open the image. */
    finishRename: (name: string, to: string, id: string) => call('image.finish_rename', { name, to, id }),
    /** The bindings do not report its progress. */
    rollBack: (clientId: number, name: string, snapshot: string) =>
      long(clientId, 'image.rollback', { name, snapshot }, UNLIMITED),
    flatten: (clientId: number, name: string, onProgress: CallOptions['onProgress']) =>
      long(clientId, 'image.flatten', { name }, { timeoutSeconds: STALL_SECONDS, onProgress }),
    /** Takes a moment, also if clients use it. Resolves also if it does not exist. */
    moveToTrash: (name: string) => call('image.trash', { name }),
    trash: () => call<{ id: string; name: string }[]>('trash.list'),
    /**
     * Deletes an image in the trash with its data; false: clones need a snapshot of it. Only one client at a time may do so: librbd
     * aborts the process whose image another one deletes.
     */
    purge: (id: string) => long<boolean>(null, 'trash.remove', { id }, UNLIMITED),
    /** Has the OSD read again which clients use an image. Those that died count for 30 s more. */
    reload: (id: string) => call('trash.reload', { id }),
    trashLock: {
      /** Takes the lock or renews it; false: another client or cookie has it. */
      acquire: (cookie: string, seconds: number) => call<boolean>('lock.acquire', { ...TRASH_LOCK, cookie, seconds }),
      release: (cookie: string) => call('lock.release', { ...TRASH_LOCK, cookie }),
    },
    /** Resolves also if it exists. */
    createSnapshot: (name: string, snapshot: string) => call('snapshot.create', { name, snapshot }),
    /** Resolves also if it does not exist. */
    removeSnapshot: (id: string, snapshot: string) => call('snapshot.remove', { id, snapshot }),
    renameSnapshot: (id: string, snapshot: string, to: string) => call('snapshot.rename', { id, snapshot, to }),
    /** By the id of the snapshot. */
    index: {
      async get(keys: string[] | null = null): Promise<Map<string, string>> {
        return new Map(Object.entries(await call<Record<string, string>>('omap.get', { object: INDEX, keys })));
      },
      set: (id: string, text: string) => call('omap.set', { object: INDEX, pairs: { [id]: text } }),
      remove: (id: string) => call('omap.remove', { object: INDEX, keys: [id] }),
    },
  };
}

export type Images = ReturnType<typeof imagesOf>;

interface FoundImage extends Pick<Image, 'id' | 'name' | 'parent'> {
  size: number;
  snapshots: string[];
}
