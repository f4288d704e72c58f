/**
 * Reads rows that may be large without keeping many of them in memory: first their sizes, then group by group. Parsing and
 * serializing a group blocks the event loop, so a group is a few milliseconds of work.
 */

/** The items of a list, read on demand. */
export type Groups<Item> = AsyncIterable<Item[]>;

/** A row and its stored size. Rows are stored compressed, so up to twenty times as many bytes are read. */
export interface SizedRow<Id> {
  id: Id;
  bytes: number;
}

const groupBytes = 64 * 1024;
const groupRows = 200;

/** Whether a row gets a group of its own. */
export const isLarge = ({ bytes }: SizedRow<unknown>): boolean => bytes > groupBytes;

/** Yields groups in the order of `rows`. Rows that were deleted before they are read are omitted. */
export async function* readInGroups<Id, Row extends { id: Id }, Item>(
  rows: SizedRow<Id>[],
  read: (ids: Id[]) => Promise<Row[]>,
  toItem: (row: Row) => Item,
): AsyncGenerator<Item[]> {
  for (const ids of groupsOf(rows)) {
    const byId = new Map((await read(ids)).map((row) => [row.id, row]));
    yield ids.flatMap((id) => (byId.has(id) ? [toItem(byId.get(id)!)] : []));
  }
}

/** A page of a list whose items are read on demand. */
export type PageInGroups<Item> = { count: number; results: Groups<Item> };

/** The rows of a page, read as by `readInGroups`. */
export function pageInGroups<Id, Row extends { id: Id }, Item>(
  { count, rows }: { count: number; rows: SizedRow<Id>[] },
  read: (ids: Id[]) => Promise<Row[]>,
  toItem: (row: Row) => Item,
): PageInGroups<Item> {
  return { count, results: readInGroups(rows, read, toItem) };
}

function groupsOf<Id>(rows: SizedRow<Id>[]): Id[][] {
  const groups: Id[][] = [];
  let room = 0;
  for (const { id, bytes } of rows) {
    const group = groups.at(-1);
    if (group && bytes <= room && group.length < groupRows) group.push(id);
    else groups.push([id]);
    room = (groups.at(-1) === group ? room : groupBytes) - bytes;
  }
  return groups;
}
