/**
 * Queries the exports of a group's server, as a client does.
 *
 * Source: RFC 7530 (NFSv4.0), sections 5.8.2 (attributes), 16.7 (GETATTR), 16.13 (LOOKUP), 16.22 (PUTROOTFH).
 */
import { exportPath } from '../ganesha/configuration.ts';
import { opaque, words } from '../xdr.ts';
import { sendCompounds, type CompoundTarget } from './compound.ts';

const [GETATTR, LOOKUP, PUTROOTFH] = [9, 15, 24];
const SPACE_TOTAL = 44;
const [OK, NOENT] = [0, 2];
const PROBED_NAME = '.cloudyard-probe';

/** The operations that find the folder of a share, or a name in it. */
function lookUp(share: string, ...names: string[]): Buffer[] {
  const path = [...exportPath(share).split('/').slice(1), ...names];
  return [words(PUTROOTFH), ...path.map((name) => Buffer.concat([words(LOOKUP), opaque(name)]))];
}

/**
 * Returns the ids of the shares that respond correctly: looks a name up that does not exist. The storage must answer each of these.
 * So an export whose client of Ceph was evicted is noticed, although Ganesha and its other exports work.
 * @throws if the server does not respond at all
 */
export async function probeExports(target: CompoundTarget, ids: string[]): Promise<Set<string>> {
  const replies = await sendCompounds(
    target,
    ids.map((id) => lookUp(id, PROBED_NAME)),
  );
  // PUTROOTFH and three LOOKUP: the last one fails.
  const correct = replies.filter(({ operations, status }) => operations === 4 && status === NOENT);
  return new Set(correct.map(({ index }) => ids[index]!));
}

/**
 * Returns the sizes that exports show to clients (`df`), bytes; those that do not respond are missing. Ganesha's client of Ceph
 * reads the quota for this answer, also one that the metadata server has not sent it yet (Client::statfs of Ceph).
 * @throws if the server does not respond at all
 */
export async function exportSizes(target: CompoundTarget, ids: string[]): Promise<Map<string, number>> {
  const attribute = words(GETATTR, 2, 0, 1 << (SPACE_TOTAL - 32));
  const replies = await sendCompounds(
    target,
    ids.map((id) => [...lookUp(id), attribute]),
  );
  return new Map(
    replies
      .filter(({ operations, status }) => operations === 4 && status === OK)
      // The results end with the attribute: an unsigned number of 64 bits.
      .map(({ index, results }) => [ids[index]!, Number(results.readBigUInt64BE(results.length - 8))]),
  );
}
