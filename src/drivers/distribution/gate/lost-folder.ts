/**
 * Finds out whether distribution could not write a file because a deletion had removed the folder that distribution had just created
 * for it. Distribution creates the folder of a link and then the link, in two steps, and so does each push of a tag. A deletion of
 * the tag, by the API or by a client, may come between them. The same request succeeds afterwards.
 */
import type { Readable } from 'node:stream';
import { startOf } from './start-of-body.ts';

/** `Err` is the number of ENOENT. */
const fault = /"Enclosed":\{"Op":"(?:open|mkdir)","Path":"[^"]*","Err":2\}/;

/** `answer` keeps its body. */
export async function isLostFolder(answer: Readable): Promise<boolean> {
  return fault.test(await startOf(answer));
}
