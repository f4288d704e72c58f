/** The operations of snapshots. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { operationsOf } from '../../http/operations.ts';
import { TaskIds } from '../../http/shapes.ts';
import { sendPage } from '../../http/streamed-list.ts';
import { metadataOperations } from '../../tags/routes.ts';
import { errorsOfNewTags, errorsOfTagMap, errorsOfTagPatch } from '../../tags/tags.ts';
import {
  CreateSnapshot,
  ListSnapshots,
  ReplaceSnapshotTags,
  Snapshot,
  SnapshotCollection,
  UpdateSnapshot,
} from './schema.ts';
import type { Snapshots } from './service.ts';

const tag = {
  name: 'Snapshots',
  description:
    'Copies of volumes at one point in time. A snapshot can be the source of a new volume, and the newest one can be ' +
    'restored with `POST /cloud/v1/volumes/{project_id}/{region_id}/{volume_id}/revert`. Lifecycle policies create and ' +
    'expire snapshots on a schedule.\n\n' +
    '| Operation | `status` |\n|---|---|\n' +
    '| create | `creating`, then `available` or `error` |\n' +
    '| revert of the volume | `restoring`, then `available` |\n' +
    '| delete | `deleting`, then 404 or `error_deleting` |\n\n' +
    'Quotas: `volume_snapshots_count` and `volume_snapshots_size` (GiB).',
};
const snapshot_id = IdOf('the snapshot');
const operation = operationsOf(tag, { snapshot_id });
const all = '/cloud/v1/snapshots/:project_id/:region_id';
const one = `${all}/:snapshot_id`;

export const snapshotOperations = ({ snapshots }: { snapshots: Snapshots }) => [
  operation('POST', all, {
    id: 'createSnapshot',
    summary: 'Create a snapshot of a volume',
    access: projectMember,
    body: CreateSnapshot,
    bodyErrors: errorsOfNewTags,
    response: TaskIds,
    handle: ({ by, scope, body }) => snapshots.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listSnapshots',
    summary: 'List snapshots',
    description: 'The oldest snapshot comes first.',
    access: projectReader,
    query: ListSnapshots,
    response: SnapshotCollection,
    handle: async ({ scope, query }, reply) => sendPage(reply, await snapshots.list(scope, query)),
  }),
  operation('GET', one, {
    id: 'getSnapshot',
    summary: 'Get a snapshot',
    access: projectReader,
    response: Snapshot,
    handle: ({ scope, params }) => snapshots.get(scope, params.snapshot_id),
  }),
  operation('PATCH', one, {
    id: 'updateSnapshot',
    summary: 'Update a snapshot',
    description: 'Changes the name and the tags that the body contains.',
    access: projectMember,
    body: UpdateSnapshot,
    bodyErrors: errorsOfTagPatch,
    response: Snapshot,
    handle: ({ by, scope, params, body }) => snapshots.update(by, scope, params.snapshot_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteSnapshot',
    summary: 'Delete a snapshot',
    access: projectMember,
    response: TaskIds,
    handle: ({ by, scope, params }) => snapshots.delete(by, scope, params.snapshot_id),
  }),
  operation('PUT', `${one}/metadata`, {
    id: 'replaceSnapshotMetadata',
    summary: 'Replace the tags of a snapshot',
    description: 'Use the `tags` of the resource instead.',
    deprecated: true,
    access: projectMember,
    body: ReplaceSnapshotTags,
    bodyErrors: errorsOfTagMap,
    response: Snapshot,
    handle: ({ by, scope, params, body }) => snapshots.replaceTags(by, scope, params.snapshot_id, body ?? {}),
  }),
  ...metadataOperations(snapshots, one, {
    tag,
    parameter: { snapshot_id },
    name: 'Snapshot',
    noun: 'snapshot',
    withReplace: false,
  }),
];
