import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { currentResource } from '../ui/current-resource.tsx';
import { type Scope, scopeParams } from '../ui/scope.tsx';

export type Snapshot = components['schemas']['Snapshot'];

export const KIND = 'snapshots';

/** The operations of one snapshot. */
export const SNAPSHOT = '/cloud/v1/snapshots/{project_id}/{region_id}/{snapshot_id}';

/** The snapshots of the project and region, or of one volume. */
export const snapshotsQuery = (scope: Scope, volumeId?: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, 'of', volumeId ?? 'all'],
    queryFn: () =>
      allRows((page) =>
        unwrap(
          api.GET('/cloud/v1/snapshots/{project_id}/{region_id}', {
            params: { path: scopeParams(scope), query: { ...page, ...(volumeId ? { volume_id: volumeId } : {}) } },
          }),
        ),
      ),
  });

export const snapshotQuery = (scope: Scope, id: string) =>
  queryOptions({
    queryKey: [KIND, scope.project, scope.region, id],
    queryFn: () => unwrap(api.GET(SNAPSHOT, { params: { path: snapshotParams(scope, id) } })),
  });

export const CurrentSnapshot = currentResource(snapshotQuery);

export function snapshotParams(scope: Scope, id: string) {
  return { ...scopeParams(scope), snapshot_id: id };
}

/** The newest snapshot of a volume that can be restored. Dates have seconds only, so the order of the volume's list decides. */
export function newestSnapshot(
  { snapshot_ids }: { readonly snapshot_ids: readonly string[] },
  snapshots: readonly Snapshot[],
): Snapshot | undefined {
  const available = new Map(snapshots.filter(({ status }) => status === 'available').map((each) => [each.id, each]));
  const newest = snapshot_ids.findLast((id) => available.has(id));
  return newest === undefined ? undefined : available.get(newest);
}
