/** SQL of the changes that operators make to hosts. */
import type { HostState } from '../../hosts/part.ts';
import { publishedChannel, serves } from '../../hosts/store.ts';
import { prepared, preparedExists, preparedRow, type Tx } from '../../platform/db.ts';

type Key = [regionId: number, name: string];

/** SQL: its lease is valid, or ended so recently that it may not have stopped. */
const mayServe = `(h.lease_until > clock_timestamp() or ${serves})`;

/** Without a lock, which the renewal of the lease would wait for. */
export const find = preparedRow<{ state: HostState }, Key, Tx>(
  'host_find',
  `select h.state from hosts h where h.region_id = $1 and h.name = $2`,
);

const updateState = prepared<{ name: string }, [...Key, draining: boolean, channel: string], Tx>(
  'host_set_draining',
  `with set as (
     update hosts set state = case when $3 then 'draining' else 'active' end
     where region_id = $1 and name = $2 and (state = 'active') = $3 returning name)
   select name, pg_notify($4, 'hosts') from set`,
);

/** No effect on a host that drains, or serves, already. */
export async function setDraining(tx: Tx, regionId: number, name: string, draining: boolean): Promise<void> {
  await updateState(tx, regionId, name, draining, publishedChannel(regionId));
}

/** False: it may still serve, and stays. */
export const remove = preparedExists<[...key: Key], Tx>(
  'host_remove',
  `delete from hosts h where h.region_id = $1 and h.name = $2 and not ${mayServe} returning h.name`,
);
