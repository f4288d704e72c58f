/** The operations of listeners (docs/interface.md, "Listeners"). */
import { atLeast } from '../../../authz/actor.ts';
import type { Routes } from '../../../http/app.ts';
import { ProjectRegion, TaskIds } from '../../../http/shapes.ts';
import {
  CreateListener,
  DeleteListener,
  GetListener,
  Listener,
  ListenerCollection,
  ListenerPath,
  ListListeners,
  RenameListener,
  UpdateListener,
} from './schema.ts';
import type { Listeners } from './service.ts';

const tags = ['Load balancer listeners'];
const all = '/cloud/v1/lblisteners/:project_id/:region_id';
const one = `${all}/:listener_id`;
const done = { 200: TaskIds };

export function listenerRoutes(listeners: Listeners): Routes {
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
          ...summarize('createListener', 'Create a listener of a load balancer'),
          params: ProjectRegion,
          body: CreateListener,
          response: done,
        },
      },
      (request) => listeners.create(request.by, request.scope, request.body),
    );

    app.get(
      all,
      {
        schema: {
          ...summarize('listListeners', 'List listeners'),
          params: ProjectRegion,
          querystring: ListListeners,
          response: { 200: ListenerCollection },
        },
      },
      (request) => listeners.list(request.scope, request.query, { showPasswords: atLeast(request.by.actor, 'member') }),
    );

    app.get(
      one,
      {
        schema: {
          ...summarize('getListener', 'Get a listener'),
          params: ListenerPath,
          querystring: GetListener,
          response: { 200: Listener },
        },
      },
      (request) =>
        listeners.get(request.scope, request.params.listener_id, {
          showStats: request.query.show_stats ?? false,
          showPasswords: atLeast(request.by.actor, 'member'),
        }),
    );

    app.patch(
      one.replace('/v1/', '/v2/'),
      {
        schema: {
          ...summarize('updateListener', 'Update a listener'),
          params: ListenerPath,
          body: UpdateListener,
          response: done,
        },
      },
      (request) => listeners.update(request.by, request.scope, request.params.listener_id, request.body),
    );

    app.patch(
      one,
      {
        schema: {
          ...summarize('updateListenerV1', 'Rename a listener and return it', true),
          params: ListenerPath,
          body: RenameListener,
          response: { 200: Listener },
        },
      },
      (request, reply) => {
        reply.header('deprecation', 'true');
        return listeners.rename(request.by, request.scope, request.params.listener_id, request.body.name);
      },
    );

    app.delete(
      one,
      {
        schema: {
          ...summarize('deleteListener', 'Delete a listener, optionally with its default pool'),
          params: ListenerPath,
          querystring: DeleteListener,
          response: done,
        },
      },
      (request) => {
        const deleteDefaultPool = request.query.delete_default_pool ?? false;
        return listeners.delete(request.by, request.scope, request.params.listener_id, { deleteDefaultPool });
      },
    );
  };
}
