/** SQL of members. Writers hold the lock of the load balancer's row. */
import { getTableColumns } from 'drizzle-orm';
import * as kit from '../../store-kit.ts';
import { lbMembers } from '../table.ts';

const columns = Object.values(getTableColumns(lbMembers)).map(({ name }) => name);
// The status belongs to the reconciler, and the endpoint identifies the member.
const fixed = ['id', 'pool_id', 'address', 'protocol_port', 'operating_status'];
const settings = columns.filter((name) => !fixed.includes(name)).map((name) => `${name} = excluded.${name}`);

/** Inserts new members and updates the settings of existing ones. */
export const write = kit.insertRows(lbMembers, { onConflict: `(id) do update set ${settings.join(', ')}` });
export const remove = kit.removeRows(lbMembers);
