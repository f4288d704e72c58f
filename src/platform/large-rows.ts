/**
 * Reads rows that may be large without holding many of them at once: first how large each is, then group by group. What
 * is done with a group (parsed, written out) keeps others waiting, so a group is some milliseconds of work.
 */

/** The items of a list, read on demand. */
export type Groups<Item> = AsyncIterable<Item[]>;

/** A row, and the bytes that the database stores for it; compressed, so up to some twenty times as many come. */
export interface SizedRow<Id> {
  id: Id;
  bytes: number;
}

const groupBytes = 64 * 1024;
const groupRows = 200;

/** Whether a row is alone in its group. */
export const isLarge = ({ bytes }: SizedRow<unknown>): boolean => bytes > groupBytes;

/** Yields groups in the order of `rows`; those that are gone by the time they are read are left out. */
export async function* readInGroups<Id, Row extends { id: Id }, Item>(
  rows: SizedRow<Id>[],
  read: (ids: Id[]) => Promise<Row[]>,
  present: (row: Row) => Item,
): AsyncGenerator<Item[]> {
  for (const ids of groupsOf(rows)) {
    const byId = new Map((await read(ids)).map((row) => [row.id, row]));
    yield ids.flatMap((id) => (byId.has(id) ? [present(byId.get(id)!)] : []));
  }
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
