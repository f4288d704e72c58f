/**
 * Stores a share in a plain folder, for hosts that cannot mount loop devices (a container without CAP_SYS_ADMIN). The size is
 * not enforced; everything else is as with images. The folder gets its final name after its mode is set.
 */
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { removeTree } from '../../platform/empty-folder.ts';
import { onHost } from '../command.ts';
import { removeUnfinished, renameDurably, syncPath, UNFINISHED } from '../durable-files.ts';
import { idsIn } from '../id-files.ts';
import type { Layout } from './layout.ts';
import { dataMissing, type ShareStorage } from './storage.ts';

/** Shares are folders of `layout.mounts`. */
export function directoryStorage(layout: Layout): ShareStorage {
  return {
    list: () => idsIn(layout.mounts, ''),
    path: layout.mount,
    reserve: () => undefined,
    deviceOf: () => null,
    async prepare() {
      for (const folder of [layout.mounts, layout.specs]) await removeUnfinished(folder);
    },
    async ensure(id, { gib, settledGib }) {
      const path = layout.mount(id);
      if ((await idsIn(layout.mounts, '')).includes(id)) return settledGib !== undefined && settledGib < gib;
      if (settledGib !== undefined) throw dataMissing(id, path);
      await onHost(`cannot create ${path}`, async () => {
        const unfinished = `${path}${UNFINISHED}`;
        await mkdir(unfinished, { recursive: true });
        await chmod(unfinished, 0o777);
        await syncPath(unfinished);
        await renameDurably(unfinished, path);
      });
      return true;
    },
    async remove(id, { quarantine }) {
      const path = layout.mount(id);
      if (quarantine && (await idsIn(layout.mounts, '')).includes(id)) {
        return renameDurably(path, join(layout.quarantine, `${Date.now()}-${id}`));
      }
      // `rm` of Node fails for paths beyond the limit of the system, which clients can create.
      await onHost(`cannot remove ${path}`, () => removeTree(path));
      await syncPath(layout.mounts);
    },
    // A folder has no space of its own, and adding up its files would read all of them.
    usage: async () => new Map(),
    close: async () => undefined,
  };
}
