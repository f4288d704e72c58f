/** The operations of volumes. */
import { projectMember, projectReader } from '../../authz/access.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { operationsOf } from '../../http/operations.ts';
import { TaskIds } from '../../http/shapes.ts';
import { sendPage } from '../../http/streamed-list.ts';
import { metadataOperations } from '../../tags/routes.ts';
import { errorsOfTagPatch } from '../../tags/tags.ts';
import {
  AttachVolume,
  CreateVolume,
  DeleteVolume,
  DetachVolume,
  ExtendVolume,
  ListVolumes,
  RetypeVolume,
  UpdateVolume,
  Volume,
  VolumeCollection,
} from './schema.ts';
import type { Volumes } from './service.ts';

const tag = {
  name: 'Volumes',
  description:
    'Block storage. A volume has a type and a size in GiB, starts empty or with the data of a snapshot, and is ready once ' +
    '`status` is `available`. It can be extended, reverted to its newest snapshot and deleted; it cannot shrink.\n\n' +
    '| Operation | `status` |\n|---|---|\n' +
    '| create | `creating`, then `available` or `error` |\n' +
    '| extend | `extending`, then `available` or `error_extending` |\n' +
    '| revert | `reverting`, then `available` or `error_restoring` |\n' +
    '| delete | `deleting`, then 404 or `error_deleting` |\n\n' +
    'A volume and its snapshots lock together: while a task changes one of them, `task_id` names the task and other ' +
    'changes fail with 409. Quotas: `volume_count` and `volume_size` (GiB).',
};
const volume_id = IdOf('the volume');
const operation = operationsOf(tag, { volume_id });
const all = '/cloud/v1/volumes/:project_id/:region_id';
const one = `${all}/:volume_id`;

export const volumeOperations = ({ volumes }: { volumes: Volumes }) => [
  operation('POST', all, {
    id: 'createVolume',
    summary: 'Create a volume',
    description: 'The volume is empty, or has the data and the size of a snapshot.',
    access: projectMember,
    body: CreateVolume,
    bodyErrors: volumes.bodyErrors,
    response: TaskIds,
    handle: ({ by, scope, body }) => volumes.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listVolumes',
    summary: 'List volumes',
    description: 'The oldest volume comes first.',
    access: projectReader,
    query: ListVolumes,
    response: VolumeCollection,
    handle: async ({ scope, query }, reply) => sendPage(reply, await volumes.list(scope, query)),
  }),
  operation('GET', one, {
    id: 'getVolume',
    summary: 'Get a volume',
    access: projectReader,
    response: Volume,
    handle: ({ scope, params }) => volumes.get(scope, params.volume_id),
  }),
  operation('PATCH', one, {
    id: 'updateVolume',
    summary: 'Update a volume',
    description: 'Changes the name and the tags that the body contains. `size` can only be repeated.',
    access: projectMember,
    body: UpdateVolume,
    bodyErrors: errorsOfTagPatch,
    response: Volume,
    handle: ({ by, scope, params, body }) => volumes.update(by, scope, params.volume_id, body),
  }),
  operation('DELETE', one, {
    id: 'deleteVolume',
    summary: 'Delete a volume',
    description:
      'Deletes the volume with its data and its snapshots. Fails with 409 while a snapshot is being copied to a new volume.',
    access: projectMember,
    query: DeleteVolume,
    response: TaskIds,
    handle: ({ by, scope, params }) => volumes.delete(by, scope, params.volume_id),
  }),
  operation('POST', `${one}/extend`, {
    id: 'extendVolume',
    summary: 'Extend a volume',
    description: 'A volume cannot shrink.',
    access: projectMember,
    body: ExtendVolume,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => volumes.extend(by, scope, params.volume_id, body.size),
  }),
  operation('POST', `${one}/retype`, {
    id: 'retypeVolume',
    summary: 'Change the type of a volume',
    description: 'Types differ in their price only, so the change is done with the response.',
    access: projectMember,
    body: RetypeVolume,
    response: Volume,
    handle: ({ by, scope, params, body }) => volumes.retype(by, scope, params.volume_id, body.volume_type),
  }),
  ...(['v1', 'v2'] as const).flatMap((version) => refusedOperations(volumes, version)),
  operation('POST', `${one}/revert`, {
    id: 'revertVolume',
    summary: 'Revert a volume to its newest snapshot',
    description:
      'The response has no body and is sent before the data is restored. Poll the volume: `task_id` names the task until the ' +
      'revert ends. Data written after the snapshot is lost.',
    access: projectMember,
    status: 200,
    handle: ({ by, scope, params }) => volumes.revert(by, scope, params.volume_id),
  }),
  ...metadataOperations(volumes, one, { tag, parameter: { volume_id }, name: 'Volume', noun: 'volume' }),
];

/** Clients know these operations; without them the error would be that of an unknown path. */
const refusedOperations = (volumes: Volumes, version: 'v1' | 'v2') =>
  (['attach', 'detach'] as const).map((action) =>
    operation('POST', `${one.replace('v1', version) as typeof one}/${action}`, {
      id: `${action}Volume${version === 'v1' ? 'V1' : ''}`,
      summary: action === 'attach' ? 'Attach a volume to an instance' : 'Detach a volume from an instance',
      description: 'Always fails with 400: instances are not supported.',
      deprecated: version === 'v1',
      access: projectMember,
      body: action === 'attach' ? AttachVolume : DetachVolume,
      response: TaskIds,
      handle: ({ scope, params }) => volumes.refuseInstance(scope, params.volume_id, action),
    }),
  );
