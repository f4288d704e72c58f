/**
 * Finds out from the start of an error response of distribution what caused it, and leaves the body as it is. This is sufficient,
 * so a manifest (up to 4 MiB) is not parsed again, which would block other requests.
 */
import { once } from 'node:events';
import type { Readable } from 'node:stream';

/** `Err` is the number of ENOENT. */
const lostFolder = /"Enclosed":\{"Op":"(?:open|mkdir)","Path":"[^"]*","Err":2\}/;

/**
 * Whether distribution could not write a file because a deletion had removed the folder that distribution had just created for it.
 * Distribution creates the folder of a link and then the link, in two steps, and so does each push of a tag. A deletion of the tag,
 * by the API or by a client, may come between them. The same request succeeds afterwards.
 */
export async function isLostFolder(answer: Readable): Promise<boolean> {
  return lostFolder.test(await startOf(answer));
}

const versionFault = /^\{"errors":\[\{"code":"UNKNOWN","message":"unknown error","detail":\{\}\}\]\}/;

/** Two errors for each faulty descriptor, and one with its digest. */
const descriptorFault = new RegExp(
  String.raw`^\{"errors":\[\{"code":"UNKNOWN","message":"unknown error"\},` +
    String.raw`\{"code":"UNKNOWN","message":"unknown error","detail":\{\}\}` +
    String.raw`(?:,\{"code":"MANIFEST_BLOB_UNKNOWN","message":"[^"]*","detail":"([\w+.:-]{1,200})")?`,
);

/**
 * The fault of the manifest that a client has pushed, or null: version 2.8 responds 500 to manifests whose `schemaVersion` is not 2,
 * to some malformed digests and to unsupported `urls`. `detail` is the error with its fields: that of a manifest has none, that of the
 * storage has at least `DriverName`.
 */
export async function manifestFault(answer: Readable): Promise<string | null> {
  const start = await startOf(answer);
  if (versionFault.test(start)) return 'schemaVersion must be 2';
  const found = descriptorFault.exec(start);
  return found && `the digest or the urls of ${found[1] ?? 'a descriptor'} are malformed`;
}

/** The first part of a body. Distribution writes the first errors and the headers at once. */
async function startOf(answer: Readable): Promise<string> {
  // A body whose start was read before, and an empty one, may not be announced as readable.
  if (answer.readableLength === 0 && !answer.readableEnded) {
    await Promise.race([once(answer, 'readable'), once(answer, 'end')]);
  }
  const start = answer.read() as Buffer | null;
  // In the same tick, because a stream whose last part was read may end in the next one.
  if (start) answer.unshift(start);
  return start?.toString('latin1') ?? '';
}
