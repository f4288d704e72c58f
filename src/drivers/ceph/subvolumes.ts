/**
 * The data of file shares: one subvolume of CephFS each, with a quota, a namespace of its own in the data pool, and a user of
 * Ceph who can reach nothing else. So a file handle that a client forged opens no file of another share.
 *
 * A subvolume cannot be renamed. One in quarantine is listed in an object, and the next subvolume of that id gets another name
 * (`<id>.2`).
 */
import { DriverError } from '../driver.ts';
import type { FileShareUsage } from '../file-share.ts';
import { checkedId, isId } from '../id-files.ts';
import { limited } from '../../platform/turns.ts';
import type { CephCaller } from './bridge.ts';
import { managerCommand, monitorCommand } from './commands.ts';
import { hasErrno } from './errors.ts';

/** Where a region keeps file shares. */
export interface SharePlace {
  bridge: CephCaller;
  regionId: number;
  pool: string;
  filesystem: string;
}

interface Subvolume {
  path: string;
  sizeGib: number;
  /** False: an operator removed its quota. */
  hasQuota: boolean;
  /** Without `client.`. */
  user: string;
  key: string;
}

interface Info {
  path: string;
  bytes_quota: number | 'infinite';
  bytes_used: number;
  data_pool: string;
  pool_namespace: string;
}

const GIB = 1024 ** 3;
/** The manager carries them out one after the other, and a command that waits for too long fails. */
const CONCURRENT_COMMANDS = 3;
/** Of those that read usage: a change does not wait until that of all shares is known. */
const CONCURRENT_READS = 2;
const QUARANTINE = 'quarantine';

/** The subvolumes of one region, in the group `cloudyard-<region>` of the filesystem. All calls reject with a DriverError. */
export function cephSubvolumes({ bridge, regionId, pool, filesystem }: SharePlace) {
  const group = `cloudyard-${regionId}`;
  const place = { vol_name: filesystem, group_name: group };
  const quarantine = { pool, namespace: `cloudyard.${regionId}.file-shares`, object: QUARANTINE };
  const { manage, info } = subvolumesAt(bridge, place);
  const readInTurn = limited(CONCURRENT_READS);
  let isPrepared = false;

  const prepare = async () => {
    if (!isPrepared) await managerCommand(bridge, { prefix: 'fs subvolumegroup create', ...place });
    isPrepared = true;
  };
  /** Names of subvolumes that are not in quarantine, by id. */
  const names = async (): Promise<Map<string, string>> => {
    await prepare();
    const listed = await manage<{ name: string }[]>('ls');
    const kept = await bridge.call<Record<string, string>>('omap.get', quarantine);
    return new Map(
      listed
        .map(({ name }) => [name.split('.')[0]!, name] as const)
        .filter(([id, name]) => isId(id) && !(name in kept)),
    );
  };
  const nextName = async (id: string) => {
    const kept = await bridge.call<Record<string, string>>('omap.get', quarantine);
    let name = id;
    for (let number = 2; name in kept; number++) name = `${id}.${number}`;
    return name;
  };
  const userOf = (id: string) => `cloudyard.${regionId}.${id}`;
  const removeUser = (id: string) => monitorCommand(bridge, { prefix: 'auth rm', entity: `client.${userOf(id)}` });

  const create = async (id: string, gib: number): Promise<Info> => {
    await prepare();
    const name = await nextName(id);
    await manage('create', { sub_name: name, size: gib * GIB, mode: '0777', namespace_isolated: true });
    const created = await info(name);
    if (!created) throw dataMissing(id, filesystem);
    return created;
  };

  return {
    /** Creates it, or grows it to this size. `settledGib`: see DesiredFileShare. */
    async ensure(shareId: string, { gib, settledGib }: { gib: number; settledGib: number | null }): Promise<Subvolume> {
      const id = checkedId(shareId, 'a file share');
      const name = (await names()).get(id);
      const before = name === undefined ? null : await info(name);
      if (!before && settledGib !== null) throw dataMissing(id, filesystem);
      let found = before ?? (await create(id, gib));
      if (name !== undefined && quotaOf(found) < gib * GIB) {
        const after = { sub_name: name, new_size: `${gib * GIB}`, no_shrink: true };
        await manage('resize', after);
        found = { ...found, bytes_quota: gib * GIB };
      }
      const user = userOf(id);
      const key = await ensureUser(bridge, filesystem, user, found);
      const { path, bytes_quota } = found;
      // Sizes are whole numbers, but an operator may have set any quota, or none.
      const hasQuota = bytes_quota !== 'infinite';
      const sizeGib = hasQuota ? Math.floor(bytes_quota / GIB) : Math.max(gib, settledGib ?? 0);
      return { path, sizeGib, hasQuota, user, key };
    },

    /** Deletes it with its data; resolves also if it does not exist. */
    async remove(shareId: string): Promise<void> {
      const id = checkedId(shareId, 'a file share');
      await removeUser(id);
      const name = (await names()).get(id);
      if (name === undefined) return;
      await manage('rm', { sub_name: name, force: true }).catch((err: unknown) => {
        if (!hasErrno(err, 'ENOENT')) throw err;
      });
    },

    /** Keeps its data, and frees the id. */
    async quarantine(shareId: string): Promise<void> {
      const id = checkedId(shareId, 'a file share');
      const name = (await names()).get(id);
      if (name === undefined) return;
      await removeUser(id);
      await bridge.call('omap.set', { ...quarantine, pairs: { [name]: new Date().toISOString() } });
    },

    list: async () => [...(await names()).keys()].sort(),

    async usage(): Promise<Map<string, FileShareUsage>> {
      const read = async ([id, name]: [string, string]) => {
        const found = await readInTurn(() => info(name));
        if (!found || found.bytes_quota === 'infinite') return [];
        return [[id, { usedBytes: found.bytes_used, totalBytes: found.bytes_quota }] as const];
      };
      return new Map((await Promise.all([...(await names())].map(read))).flat());
    },
  };
}

/** Creates the user of a subvolume, or gives the one that exists its capabilities. Returns the key. */
async function ensureUser(
  bridge: CephCaller,
  filesystem: string,
  user: string,
  { path, data_pool, pool_namespace }: Info,
): Promise<string> {
  const entity = `client.${user}`;
  const caps = [
    ...['mon', `allow r fsname=${filesystem}`],
    ...['mds', `allow rw fsname=${filesystem} path=${path}`],
    ...['osd', `allow rw pool=${data_pool} namespace=${pool_namespace}`],
  ];
  const getOrCreate = () => monitorCommand<[{ key: string }]>(bridge, { prefix: 'auth get-or-create', entity, caps });
  const [{ key }] = await getOrCreate().catch(async (err: unknown) => {
    // It exists with other capabilities, for example because the subvolume has another path. Its key stays the same, because
    // hosts serve with it.
    if (!hasErrno(err, 'EINVAL')) throw err;
    await monitorCommand(bridge, { prefix: 'auth caps', entity, caps });
    return getOrCreate();
  });
  return key;
}

/** Creates a subvolume without a quota, for data that is not of a share, unless it exists. Returns its path. */
export async function ensureSubvolume(bridge: CephCaller, filesystem: string, name: string): Promise<string> {
  const { manage, info } = subvolumesAt(bridge, { vol_name: filesystem });
  await manage('create', { sub_name: name });
  const found = await info(name);
  if (!found) throw dataMissing(name, filesystem);
  return found.path;
}

/** Commands of the subvolumes of a filesystem, or of a group of it. */
function subvolumesAt(bridge: CephCaller, place: { vol_name: string; group_name?: string }) {
  const inTurn = limited(CONCURRENT_COMMANDS);
  const manage = <Result = unknown>(command: string, args: Record<string, unknown> = {}): Promise<Result> =>
    inTurn(() => managerCommand(bridge, { prefix: `fs subvolume ${command}`, ...place, ...args }));
  return {
    manage,
    /** Null: it does not exist. */
    async info(name: string): Promise<Info | null> {
      try {
        return await manage<Info>('info', { sub_name: name });
      } catch (err) {
        if (hasErrno(err, 'ENOENT')) return null;
        throw err;
      }
    },
  };
}

/** A quota that an operator removed is larger than any size. */
function quotaOf({ bytes_quota }: Info): number {
  return bytes_quota === 'infinite' ? Number.MAX_SAFE_INTEGER : bytes_quota;
}

function dataMissing(id: string, filesystem: string): DriverError {
  return new DriverError(`the data of ${id} is missing: the filesystem ${filesystem} has no subvolume for it`, {
    customerMessage: 'the data of this share is missing in the storage cluster; ask the operator',
    retryable: false,
  });
}
