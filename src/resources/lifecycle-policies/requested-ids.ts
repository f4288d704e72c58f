/** The ids that a request names. */
import type { FieldError } from '../../errors/catalogue.ts';

export function uniqueIds(ids: string[]): string[] {
  return [...new Set(ids.map((id) => id.toLowerCase()))];
}

/** Names every volume that does not exist in the project and region. */
export function volumeErrors(ids: string[], found: { id: string }[]): FieldError[] {
  return unknownIdErrors(ids, found, 'volume_ids', 'volume');
}

/** Names every id that is not found. `path`: the field of the list; `what`: such as `volume`. */
export function unknownIdErrors(ids: string[], found: { id: string }[], path: string, what: string): FieldError[] {
  const known = new Set(found.map(({ id }) => id));
  return ids.flatMap((id, i) =>
    known.has(id.toLowerCase()) ? [] : [{ path: `${path}.${i}`, message: `${what} ${id} not found` }],
  );
}
