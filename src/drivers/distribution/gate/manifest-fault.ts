/**
 * Finds out whether a server error of distribution is the fault of the manifest that a client has pushed: version 2.8 responds
 * 500 to manifests whose `schemaVersion` is not 2, to some malformed digests and to unsupported `urls`.
 *
 * Its response is sufficient, so the manifest (up to 4 MiB) is not parsed again, which would block other requests. `detail` is
 * the error with its fields: that of a manifest has none, that of the storage has at least `DriverName`.
 */
import type { Readable } from 'node:stream';
import { startOf } from './start-of-body.ts';

const versionFault = /^\{"errors":\[\{"code":"UNKNOWN","message":"unknown error","detail":\{\}\}\]\}/;

/** Two errors for each faulty descriptor, and one with its digest. */
const descriptorFault = new RegExp(
  String.raw`^\{"errors":\[\{"code":"UNKNOWN","message":"unknown error"\},` +
    String.raw`\{"code":"UNKNOWN","message":"unknown error","detail":\{\}\}` +
    String.raw`(?:,\{"code":"MANIFEST_BLOB_UNKNOWN","message":"[^"]*","detail":"([\w+.:-]{1,200})")?`,
);

/** The fault of the manifest, or null. `answer` keeps its body. */
export async function manifestFault(answer: Readable): Promise<string | null> {
  const start = await startOf(answer);
  if (versionFault.test(start)) return 'schemaVersion must be 2';
  const found = descriptorFault.exec(start);
  return found && `the digest or the urls of ${found[1] ?? 'a descriptor'} are malformed`;
}
