/** SQL of file shares. Writes touch this folder's tables only; reads may join the tables that a share refers to. */
import { getTableColumns, sql } from 'drizzle-orm';
import { type Db, deferred, type DeferredWrite, prepared, type Tx } from '../../platform/db.ts';
import { networks } from '../networks/table.ts';
import * as kit from '../store-kit.ts';
import type { ProjectRegion } from '../store-kit.ts';
import { subnets } from '../subnets/table.ts';
import type { AccessRuleState, ListFileShares } from './schema.ts';
import { fileShareAccessRules, fileShares, type fileShareUsage } from './table.ts';

export type FileShareRow = typeof fileShares.$inferSelect;
export type AccessRuleRow = typeof fileShareAccessRules.$inferSelect;

const resource = 'file_share';

export const { lockById, update } = kit.singleRows(fileShares);
export const lock = kit.lockWithTask(fileShares);
/**
 * Expected on the host are shares that it created and that are not being changed, also those whose last change failed.
 * `remove` also removes the access rules.
 */
export const { findPending, findKnown, findExpected, remove } = kit.reconciledRows(fileShares, {
  condition: `deleted_at is null and observed_size is not null and observed_generation = generation`,
  counted: resource,
});

const viewColumns = {
  ...getTableColumns(fileShares),
  networkName: networks.name,
  subnetName: subnets.name,
  taskId: kit.activeTask(fileShares.id),
};
/** A share with the names of its network and subnet, and the task that locks it. */
export type FileShareView = FileShareRow & { networkName: string; subnetName: string; taskId: string | null };

const selection = {
  columns: viewColumns,
  joins: sql`join ${networks} on ${networks.id} = ${fileShares.networkId}
    join ${subnets} on ${subnets.id} = ${fileShares.subnetId}`,
};
export const view = kit.viewOf<FileShareView>(fileShares, selection);
const readPage = kit.pagesOf<FileShareView>(fileShares, { ...selection, counted: resource });

export const list = (db: Db, scope: ProjectRegion, filter: ListFileShares) =>
  readPage(db, scope, filter, [
    kit.contains(fileShares.name, filter.name),
    kit.equals(fileShares.typeName, filter.type_name),
  ]);

const initial = {
  ...kit.newReconciledRow,
  status: 'creating',
  observedSize: null,
  observedReal: false,
  connectionPoint: null,
} as const;
type NewFileShare = Omit<FileShareRow, keyof typeof initial>;

const insertRow = kit.insertRow(fileShares, { counted: resource });

export const insert: DeferredWrite<[share: NewFileShare]> = (tx, share) => insertRow(tx, { ...share, ...initial });

/** What a reconcile needs of an access rule. */
export type ReconciledRule = Pick<AccessRuleRow, 'id' | 'accessLevel' | 'network' | 'state'> & { deletedAt: unknown };

const { id, accessLevel, network, state, deletedAt } = fileShareAccessRules;
const ruleColumns = { id, accessLevel, network, state, deletedAt };
const rules = kit.jsonRows(fileShareAccessRules, ruleColumns, 'file_share_id = file_shares.id');
/** A share and its access rules, in one read with other reconciles. */
export const load = kit.rowById<FileShareRow & { rules: ReconciledRule[] }>(
  fileShares,
  { columns: { ...getTableColumns(fileShares), rules } },
  'file_share_load',
);

/** Records what the host has of a generation. A later change has set its own status, and its own job ends it. */
export const recordObserved = deferred<
  [id: string, generation: number, connectionPoint: string, sizeGib: number, real: boolean]
>('file_share_observed', {
  parameters: 'uuid, bigint, text, bigint, boolean',
  body: `update file_shares set observed_generation = $2, connection_point = $3, observed_size = $4,
      observed_real = observed_real or $5, status = case when generation = $2 then 'available' else status end
    where id = $1;`,
});

/** In the order in which they were created. */
export const accessRules = prepared<AccessRuleRow, [fileShareId: string]>(
  'file_share_access_rules',
  `${kit.selectOf(fileShareAccessRules)}
   where file_share_id = $1 order by created_at, id`,
);

const lockGroups = prepared<{ address: string; lastExportId: number; exportIds: number[] }, [number, string[]], Tx>(
  'nfs_groups_lock',
  `with added as (
     insert into nfs_groups (region_id, address, last_export_id) select $1, address, 0 from unnest($2::text[]) as address
     on conflict (region_id, address) do update set last_export_id = nfs_groups.last_export_id
     returning address, last_export_id)
   select address, last_export_id as "lastExportId", array(
     select export_id from file_shares where region_id = $1 and nfs_group = address) as "exportIds"
   from added`,
);

const writeLastExportId = prepared<object, [number, string, number], Tx>(
  'nfs_group_last_export_id',
  'update nfs_groups set last_export_id = $3 where region_id = $1 and address = $2',
);

/** In a region of several hosts: reserves an export id in the group with the fewest shares; null: every group is full. */
export async function placeExport(tx: Tx, regionId: number, addresses: string[]) {
  // The second statement sees what others have committed while the first one waited for the rows.
  await lockGroups(tx, regionId, [...addresses].sort());
  const groups = await lockGroups(tx, regionId, addresses);
  const [group] = groups.sort((a, b) => a.exportIds.length - b.exportIds.length);
  if (!group || group.exportIds.length >= exportsOfGroup) return null;
  const exportId = nextExportId(group.lastExportId, new Set(group.exportIds));
  await writeLastExportId(tx, regionId, group.address, exportId);
  return { nfsGroup: group.address, exportId };
}

/** Each export is a client of Ceph, which costs 0.1 s when the group fails over. */
export const exportsOfGroup = 30;
const lastPossibleExportId = 65_535;

function nextExportId(last: number, taken: ReadonlySet<number>): number {
  let next = last;
  do next = (next % lastPossibleExportId) + 1;
  while (taken.has(next));
  return next;
}

export const insertAccessRules = kit.insertRows(fileShareAccessRules);

const writeAccessRuleStates = deferred<[ids: string[], before: string[], after: string[]], void, Db | Tx>(
  'file_share_access_rule_states',
  {
    parameters: 'uuid[], text[], text[]',
    body: `update file_share_access_rules r set state = change.after
    from unnest($2, $3) as change (before, after) where r.id = any($1) and r.state = change.before;`,
  },
);

/** Changes the states of the rules. A rule whose row is in a state that `changes` does not name is unchanged. */
export const changeAccessRuleStates: DeferredWrite<
  [rules: { id: string }[], changes: { [Before in AccessRuleState]?: AccessRuleState }],
  Db | Tx
> = async (on, rules, changes) => {
  const ids = rules.map((rule) => rule.id);
  if (ids.length > 0) await writeAccessRuleStates(on, ids, Object.keys(changes), Object.values(changes));
};

export const denyAccessRule = prepared<object, [id: string, deletedAt: Date], Tx>(
  'file_share_access_rule_deny',
  `update file_share_access_rules set state = 'queued_to_deny', deleted_at = $2 where id = $1`,
);

export const removeAccessRules = kit.removeRows(fileShareAccessRules);

export const usesOfProject = kit.usesOfProject('file share', fileShares);

/** Space of the filesystem of a share, in bytes. */
export type Usage = typeof fileShareUsage.$inferSelect;

/** Ignores unknown shares. The others are locked, so that nothing is written for one that is being removed. */
export const recordUsage = kit.writeRows<Usage>(
  'file_share_usage_write',
  ['fileShareId', 'usedBytes', 'totalBytes'],
  `with measured as (
     select m.* from unnest($1::uuid[], $2::bigint[], $3::bigint[]) as m (id, used, total)
     join file_shares s on s.id = m.id order by s.id for key share of s)
   insert into file_share_usage as u (file_share_id, used_bytes, total_bytes) select id, used, total from measured
   on conflict (file_share_id) do update set used_bytes = excluded.used_bytes, total_bytes = excluded.total_bytes
   where (u.used_bytes, u.total_bytes) is distinct from (excluded.used_bytes, excluded.total_bytes)`,
);

const readUsage = prepared<kit.Found<Usage>>(
  'file_share_usage_list',
  `with found as (
     select u.*, s.created_at from file_share_usage u join file_shares s on s.id = u.file_share_id
     where s.project_id = $1 and s.region_id = $2 and ($3::uuid is null or s.id = $3))
   select (select count(*)::int from found) as count, coalesce((select json_agg(json_build_object(
       'fileShareId', file_share_id, 'usedBytes', used_bytes, 'totalBytes', total_bytes) order by created_at, file_share_id)
     from (select * from found order by created_at, file_share_id limit $4 offset $5) as page), '[]') as rows`,
);

/** Of the shares that were measured, oldest first. */
export async function listUsage(
  db: Db,
  { projectId, regionId }: ProjectRegion,
  filter: kit.PageQuery & { file_share_id?: string },
): Promise<kit.Found<Usage>> {
  const { file_share_id: id, limit = 1000, offset = 0 } = filter;
  const [found] = await readUsage(db, projectId, regionId, id ?? null, limit, offset);
  return found!;
}

export const usageOfRows = kit.usageOfRows(fileShares, { sfs_count: 'count(*)', sfs_size: 'sum(size)' });
