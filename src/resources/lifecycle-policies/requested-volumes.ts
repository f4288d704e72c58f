/** The volumes that a request names. */
import { invalidInput } from '../../errors/catalogue.ts';

export function uniqueIds(ids: string[]): string[] {
  return [...new Set(ids.map((id) => id.toLowerCase()))];
}

/** @throws ClientError 400 that names every volume that does not exist in the project and region */
export function requireVolumes(ids: string[], found: { id: string }[]): void {
  const known = new Set(found.map(({ id }) => id));
  const errors = ids.flatMap((id, i) =>
    known.has(id.toLowerCase()) ? [] : [{ path: `volume_ids.${i}`, message: `volume ${id} was not found` }],
  );
  if (errors.length > 0) throw invalidInput(errors);
}
