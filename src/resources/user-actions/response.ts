/** Pure: an entry of the audit log as a user action. */
import type { Change } from '../../audit/audit.ts';
import { withZone } from '../../platform/clock.ts';
import { officialNameOf, resourceTypes } from './actions.ts';
import type { UserAction } from './schema.ts';
import type { ActionEntry } from './store.ts';

/** Null for an entry that is not a user action. */
export function toUserAction(entry: ActionEntry): UserAction | null {
  const name = officialNameOf(entry.operation);
  if (!name) return null;
  const { origin, changes } = entry;
  return {
    id: String(entry.id),
    timestamp: withZone(entry.at),
    action_type: name.action,
    api_group: name.group,
    acknowledged: entry.acknowledged,
    action_data: { operation: entry.operation, request_id: entry.requestId },
    client_id: entry.clientId,
    project_id: entry.projectId,
    region_id: entry.regionId,
    user_id: entry.tokenId ?? 0,
    token_id: entry.tokenId,
    issued_by_user_id: null,
    email: null,
    source_user_ip: origin.address ?? null,
    user_agent: origin.user_agent ?? null,
    task_id: entry.taskId ?? creatorOf(changes),
    is_complete: !changes.some(isCut),
    resources: changes.flatMap(resourceOf),
    total_price: null,
  };
}

/** The mark of an entry whose further changes were omitted (audit/triggers.ts). */
const isCut = ({ table }: Change) => table === '…';

/** The task that created a new resource; its row may have been removed since. */
function creatorOf(changes: Change[]): string | null {
  const ids = changes.map(({ before, after }) => (before === null ? after?.['creator_task_id'] : undefined));
  return ids.find((id) => typeof id === 'string') ?? null;
}

function resourceOf({ table, id, before, after }: Change): UserAction['resources'] {
  const type = resourceTypes[table];
  if (type === undefined) return [];
  // A row that is marked as deleted is recorded whole in `before` (audit/triggers.ts).
  const isDeletion = after === null || before?.['deleted_at'] === null;
  const body = isDeletion ? before : after;
  const name = body?.['name'];
  // Members of a policy have no id of their own.
  const resourceId = id ?? body?.['volume_id'] ?? '';
  return [
    {
      resource_id: String(resourceId),
      resource_type: type,
      resource_body: body,
      search_field: typeof name === 'string' ? name : null,
    },
  ];
}
