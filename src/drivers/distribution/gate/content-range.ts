/**
 * Refuses chunks of an upload that are out of order, as the OCI specification requires. Distribution 2.8 ignores Content-Range and
 * appends each chunk, so that the client learns from the digest at the end that it must start again.
 */
import { Refusal } from './refusal.ts';

/** @throws Refusal if a chunk with this Content-Range does not begin where the upload ends, after `stored` bytes */
export function requireInOrder(range: string, stored: number): void {
  // Distribution accepts other forms, which have no meaning in the specification.
  const first = /^(\d+)-\d+$/.exec(range)?.[1];
  if (first === undefined || Number(first) === stored) return;
  throw new Refusal(
    416,
    'RANGE_INVALID',
    `the chunk begins at byte ${first}, and the upload has ${stored} bytes; get its location for the next chunk`,
  );
}
