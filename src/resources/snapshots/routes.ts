/** The HTTP operations of snapshots. */
import type { Routes } from '../../http/app.ts';
import { routesOf } from '../../http/operations.ts';
import { ProjectRegion, TaskIds, Uuid } from '../../http/shapes.ts';
import { metadataOperations } from '../../tags/routes.ts';
import { replacingBy, UpdateTags } from '../../tags/tags.ts';
import { CreateSnapshot, ListSnapshots, Snapshot, SnapshotCollection, SnapshotPath, UpdateSnapshot } from './schema.ts';
import type { Snapshots } from './service.ts';

const tags = ['Snapshots'];
const all = '/cloud/v1/snapshots/:project_id/:region_id';
const one = `${all}/:snapshot_id`;

export function snapshotRoutes(snapshots: Snapshots): Routes {
  return (app) => {
    const summarize = (operationId: string, summary: string, deprecated = false) => ({
      operationId,
      summary,
      tags,
      ...(deprecated && { deprecated }),
    });

    app.post(
      all,
      {
        schema: {
          ...summarize('createSnapshot', 'Create a snapshot of a volume'),
          params: ProjectRegion,
          body: CreateSnapshot,
          response: { 200: TaskIds },
        },
      },
      (request) => snapshots.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listSnapshots', 'List snapshots, oldest first'),
          params: ProjectRegion,
          querystring: ListSnapshots,
          response: { 200: SnapshotCollection },
        },
      },
      (request) => snapshots.list(request.scope, request.query),
    );

    app.get(
      one,
      { schema: { ...summarize('getSnapshot', 'Get a snapshot'), params: SnapshotPath, response: { 200: Snapshot } } },
      (request) => snapshots.get(request.scope, request.params.snapshot_id),
    );

    app.patch(
      one,
      {
        schema: {
          ...summarize('updateSnapshot', 'Update a snapshot: name, tags'),
          params: SnapshotPath,
          body: UpdateSnapshot,
          response: { 200: Snapshot },
        },
      },
      (request) => snapshots.update(request.by, request.scope, request.params.snapshot_id, request.body),
    );

    app.put(
      `${one}/metadata`,
      {
        schema: {
          ...summarize('replaceSnapshotMetadata', 'Replace the user-managed tags of a snapshot', true),
          params: SnapshotPath,
          body: UpdateTags,
          response: { 200: Snapshot },
        },
      },
      ({ by, scope, params, body }) => snapshots.changeTags(by, scope, params.snapshot_id, replacingBy(body ?? {})),
    );

    app.delete(
      one,
      {
        schema: {
          ...summarize('deleteSnapshot', 'Delete a snapshot'),
          params: SnapshotPath,
          response: { 200: TaskIds },
        },
      },
      (request) => snapshots.delete(request.by, request.scope, request.params.snapshot_id),
    );

    routesOf(
      metadataOperations(snapshots, one, {
        tag: { name: 'Snapshots', description: '' },
        parameter: { snapshot_id: Uuid },
        name: 'Snapshot',
        noun: 'snapshot',
        withReplace: false,
      }),
    )(app);
  };
}
