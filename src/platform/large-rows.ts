/**
 * Reads rows that may be large without keeping many of them in memory: first their sizes, then group by group. Parsing and
 * serializing a group blocks the event loop, so a group is a few milliseconds of work. Pages of rows with tags are read at once,
 * because a second statement would make all lists slower, and only their responses are made in groups.
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

/** A page that is longer than this is sent in groups. */
const wholeBytes = 256 * 1024;

/** Whether a row gets a group of its own. */
export const isLarge = ({ bytes }: SizedRow<unknown>): boolean => bytes > groupBytes;

/** Yields groups in the order of `rows`. Rows that were deleted before they are read are omitted. */
export async function* readInGroups<Id, Row extends { id: Id }, Item>(
  rows: SizedRow<Id>[],
  read: (ids: Id[]) => Promise<Row[]>,
  toItem: (row: Row) => Item,
): AsyncGenerator<Item[]> {
  for (const group of groupsOf(rows, ({ bytes }) => bytes)) {
    const ids = group.map(({ id }) => id);
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

/** A page of a list. The items of a long one are made on demand. */
export type PageOfItems<Item> = { count: number; results: Item[] | Groups<Item> };

/**
 * A page whose rows were read at once. Its items may be several times as large as the rows.
 * `bytesOf`: about how many bytes the item of a row has.
 */
export function pageOfItems<Row, Item>(
  { count, rows }: { count: number; rows: Row[] },
  bytesOf: (row: Row) => number,
  toItem: (row: Row) => Item,
): PageOfItems<Item> {
  const bytes = rows.reduce((sum, row) => sum + bytesOf(row), 0);
  if (bytes <= wholeBytes) return { count, results: rows.map(toItem) };
  return { count, results: itemsInGroups(groupsOf(rows, bytesOf), toItem) };
}

// oxlint-disable-next-line typescript/require-await
async function* itemsInGroups<Row, Item>(groups: Row[][], toItem: (row: Row) => Item): AsyncGenerator<Item[]> {
  for (const group of groups) yield group.map(toItem);
}

function groupsOf<Row>(rows: Row[], bytesOf: (row: Row) => number): Row[][] {
  const groups: Row[][] = [];
  let room = 0;
  for (const row of rows) {
    const bytes = bytesOf(row);
    const group = groups.at(-1);
    if (group && bytes <= room && group.length < groupRows) group.push(row);
    else groups.push([row]);
    room = (groups.at(-1) === group ? room : groupBytes) - bytes;
  }
  return groups;
}
