/** The HTTP operations of volumes. */
import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { routesOf } from '../../http/operations.ts';
import { ProjectRegion, TaskIds, Uuid } from '../../http/shapes.ts';
import { metadataOperations } from '../../tags/routes.ts';
import {
  CreateVolume,
  DeleteVolume,
  ExtendVolume,
  ListVolumes,
  UpdateVolume,
  Volume,
  VolumeCollection,
  VolumePath,
} from './schema.ts';
import type { Volumes } from './service.ts';

const tags = ['Volumes'];
const all = '/cloud/v1/volumes/:project_id/:region_id';
const one = `${all}/:volume_id`;

export function volumeRoutes(volumes: Volumes): Routes {
  return (app) => {
    const summarize = (operationId: string, summary: string) => ({ operationId, summary, tags });

    app.post(
      all,
      {
        schema: {
          ...summarize('createVolume', 'Create a volume, empty or from a snapshot'),
          params: ProjectRegion,
          body: CreateVolume,
          response: { 200: TaskIds },
        },
      },
      (request) => volumes.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listVolumes', 'List volumes, oldest first'),
          params: ProjectRegion,
          querystring: ListVolumes,
          response: { 200: VolumeCollection },
        },
      },
      (request) => volumes.list(request.scope, request.query),
    );

    app.get(
      one,
      { schema: { ...summarize('getVolume', 'Get a volume'), params: VolumePath, response: { 200: Volume } } },
      (request) => volumes.get(request.scope, request.params.volume_id),
    );

    app.patch(
      one,
      {
        schema: {
          ...summarize('updateVolume', 'Update a volume: name, tags'),
          params: VolumePath,
          body: UpdateVolume,
          response: { 200: Volume },
        },
      },
      (request) => volumes.update(request.by, request.scope, request.params.volume_id, request.body),
    );

    app.delete(
      one,
      {
        schema: {
          ...summarize('deleteVolume', 'Delete a volume with its data, and with the snapshots that are named'),
          params: VolumePath,
          querystring: DeleteVolume,
          response: { 200: TaskIds },
        },
      },
      (request) => volumes.delete(request.by, request.scope, request.params.volume_id, request.query.snapshots),
    );

    app.post(
      `${one}/extend`,
      {
        schema: {
          ...summarize('extendVolume', 'Grow a volume'),
          params: VolumePath,
          body: ExtendVolume,
          response: { 200: TaskIds },
        },
      },
      (request) => volumes.extend(request.by, request.scope, request.params.volume_id, request.body.size),
    );

    app.post(
      `${one}/revert`,
      {
        schema: {
          ...summarize('revertVolume', 'Revert a volume to its newest snapshot; its task_id says when that is done'),
          params: VolumePath,
          response: { 200: Type.Null({ description: 'Accepted; no body' }) },
        },
      },
      async (request, reply) => {
        await volumes.revert(request.by, request.scope, request.params.volume_id);
        // Nothing at all, where null would be written as `null`.
        return reply.code(200).send(undefined as unknown as null);
      },
    );

    routesOf(
      metadataOperations(volumes, one, {
        tag: { name: 'Volumes', description: '' },
        parameter: { volume_id: Uuid },
        name: 'Volume',
        noun: 'volume',
      }),
    )(app);
  };
}
