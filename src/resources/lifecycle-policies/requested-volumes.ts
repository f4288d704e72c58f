/** The volumes that a request names. */
import { requireNoErrors } from '../../errors/catalogue.ts';
import type { FieldError } from '../../errors/catalogue.ts';

export function uniqueIds(ids: string[]): string[] {
  return [...new Set(ids.map((id) => id.toLowerCase()))];
}

/** Names every volume that does not exist in the project and region. */
export function volumeErrors(ids: string[], found: { id: string }[]): FieldError[] {
  const known = new Set(found.map(({ id }) => id));
  return ids.flatMap((id, i) =>
    known.has(id.toLowerCase()) ? [] : [{ path: `volume_ids.${i}`, message: `volume ${id} not found` }],
  );
}

/** @throws ClientError 400 */
export function requireVolumes(ids: string[], found: { id: string }[]): void {
  requireNoErrors(volumeErrors(ids, found));
}
