/**
 * Power loss at every moment of some file operations. The model is that of POSIX: the content of a file is durable as of its
 * last fsync, and the names in a folder as of the last fsync of the folder. After a power loss each file and folder has
 * either its durable or its current state. A rename from one folder to another is atomic until one of them is synced.
 */
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { Around, FileOperation } from './storage-layer.ts';

/** The first bytes and the size: images are sparse and large. */
interface Content {
  head: Buffer;
  size: number;
  mode: number;
}

const headBytes = 64 * 1024;

interface Recorder {
  layer: Around;
  /** Every state in which the tree may be found after a power loss now, by description. */
  states(): { what: string; restore(to: string): void }[];
  close(): void;
}

/** Records a tree whose root is durable. `onStep` runs before and after each operation. */
export function recordTree(root: string, onStep: (what: string) => Promise<void> | void): Recorder {
  const open = new Map<number, number>();
  const names = new Map<number, Map<string, number>>();
  const contents = new Map<number, Content>();
  /** Renames between folders of which neither was synced since. */
  let moves: { from: number; to: number }[] = [];
  const rootInode = fs.statSync(root).ino;

  /** Keeps the inode open, so that its number is not used again and its content remains readable. */
  const keep = (path: string): number => {
    const { ino } = fs.statSync(path);
    if (!open.has(ino)) open.set(ino, fs.openSync(path, 'r'));
    return ino;
  };
  const entriesOf = (folder: string): Map<string, number> =>
    new Map(fs.readdirSync(folder).map((name) => [name, keep(join(folder, name))]));
  const pathOf = (ino: number) => fs.readlinkSync(`/proc/self/fd/${open.get(ino)}`);
  const isFolder = (ino: number) => fs.fstatSync(open.get(ino)!).isDirectory();
  const contentOf = (ino: number): Content => {
    const descriptor = open.get(ino)!;
    const { size, mode } = fs.fstatSync(descriptor);
    const head = Buffer.alloc(Math.min(size, headBytes));
    fs.readSync(descriptor, head, 0, head.length, 0);
    return { head, size, mode };
  };
  const setDurable = (ino: number): void => {
    moves = moves.filter(({ from, to }) => from !== ino && to !== ino);
    if (isFolder(ino)) names.set(ino, entriesOf(pathOf(ino)));
    else contents.set(ino, contentOf(ino));
  };
  /** All folders that a durable or a current name leads to. */
  const folders = (): number[] => {
    const found = new Set<number>();
    const visit = (ino: number): void => {
      if (found.has(ino) || !isFolder(ino)) return;
      found.add(ino);
      for (const each of [names.get(ino), currentEntries(ino)]) for (const child of each?.values() ?? []) visit(child);
    };
    visit(rootInode);
    return [...found];
  };
  const currentEntries = (ino: number): Map<string, number> => {
    const path = pathOf(ino);
    return path.endsWith(' (deleted)') ? new Map() : entriesOf(path);
  };

  keep(root);
  for (const ino of folders()) names.set(ino, currentEntries(ino));

  const isInTree = ({ targets: [target] }: FileOperation) =>
    (typeof target === 'number' ? fs.readlinkSync(`/proc/self/fd/${target}`) : String(target)).startsWith(root);

  return {
    layer: (operation, perform) => {
      if (!isInTree(operation)) return perform();
      const done = () => {
        const [target, other] = operation.targets;
        if (operation.name.startsWith('rename')) {
          const [from, to] = [keep(dirname(String(target))), keep(dirname(String(other)))];
          if (from !== to) moves.push({ from, to });
        }
        if (/sync/i.test(operation.name.replace(/Sync$/, '')) && typeof target === 'number') {
          setDurable(keep(fs.readlinkSync(`/proc/self/fd/${target}`)));
        }
      };
      const name = `${operation.name} ${operation.targets.join(' ')}`;
      const before = onStep(`before ${name}`);
      if (!(before instanceof Promise)) {
        const result = perform();
        if (!(result instanceof Promise)) {
          done();
          void onStep(`after ${name}`);
          return result;
        }
      }
      return Promise.resolve(before)
        .then(perform)
        .then(async (result) => {
          done();
          await onStep(`after ${name}`);
          return result;
        });
    },
    states() {
      for (const ino of folders())
        for (const child of currentEntries(ino).values()) keep(`/proc/self/fd/${open.get(child)}`);
      const all = folders();
      const restorer = (isDurable: (ino: number) => boolean, what: string) => {
        const entries = new Map(
          all.map((ino) => [ino, isDurable(ino) ? (names.get(ino) ?? new Map()) : currentEntries(ino)]),
        );
        const chosen = new Map(
          [...entries.values()]
            .flatMap((each) => [...each.values()])
            .filter((ino) => !isFolder(ino))
            .map((ino) => [
              ino,
              isDurable(ino) ? (contents.get(ino) ?? { head: Buffer.alloc(0), size: 0, mode: 0o600 }) : contentOf(ino),
            ]),
        );
        return { what, restore: (to: string) => restoreFolder(to, rootInode, entries, chosen) };
      };
      return [
        restorer(() => true, 'nothing but what was synced'),
        restorer(() => false, 'everything'),
        restorer((ino) => !isFolder(ino), 'all names and the synced contents'),
        restorer((ino) => isFolder(ino), 'the synced names and all contents'),
        ...all
          .filter((folder) => !moves.some(({ to }) => to === folder))
          .map((folder) => restorer((ino) => ino === folder, `everything but the names in ${pathOf(folder)}`)),
      ];
    },
    close() {
      for (const descriptor of open.values()) fs.closeSync(descriptor);
    },
  };
}

function restoreFolder(
  to: string,
  ino: number,
  entries: Map<number, Map<string, number>>,
  contents: Map<number, Content>,
): void {
  fs.mkdirSync(to, { recursive: true });
  for (const [name, child] of entries.get(ino) ?? []) {
    const path = join(to, name);
    const content = contents.get(child);
    if (!content) restoreFolder(path, child, entries, contents);
    else {
      fs.writeFileSync(path, content.head, { mode: content.mode & 0o777 });
      fs.truncateSync(path, content.size);
    }
  }
}
