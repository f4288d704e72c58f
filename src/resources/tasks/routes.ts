import { Type } from 'typebox';
import type { Routes } from '../../http/app.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import { ProjectRegion } from '../../http/shapes.ts';
import {
  AcknowledgeAll,
  AcknowledgeTasks,
  GetTask,
  ListActiveTasks,
  ListTasks,
  Task,
  TaskCollection,
  TaskPath,
} from './schema.ts';
import type { TaskViews } from './service.ts';

const tags = ['Tasks'];
const nothing = { 204: Type.Null({ description: 'Done' }) };

export function taskRoutes(tasks: TaskViews): Routes {
  return (app) => {
    app.get(
      '/cloud/v1/tasks',
      {
        schema: {
          operationId: 'listTasks',
          summary: 'List tasks, oldest first unless told otherwise',
          tags,
          querystring: ListTasks,
          response: { 200: TaskCollection },
        },
      },
      async (request, reply) => sendInGroups(reply, await tasks.list(request.by.actor, request.query)),
    );

    app.get(
      '/cloud/v1/tasks/:project_id/:region_id/active',
      {
        schema: {
          operationId: 'listActiveTasks',
          summary: 'List the tasks of a project that have not ended',
          tags,
          params: ProjectRegion,
          querystring: ListActiveTasks,
          response: { 200: TaskCollection },
        },
      },
      async (request, reply) =>
        sendInGroups(reply, await tasks.listActive(request.by.actor, request.scope, request.query)),
    );

    // Clients poll either path; the SDKs poll /cloud/v1/tasks.
    for (const [prefix, operationId] of [
      ['/cloud', 'getTask'],
      ['', 'getTaskShort'],
    ]) {
      app.get(
        `${prefix}/v1/tasks/:task_id`,
        {
          schema: {
            operationId,
            summary: 'Get a task; with `wait`, as soon as it ends',
            tags,
            params: TaskPath,
            querystring: GetTask,
            response: { 200: Task },
          },
        },
        (request) => tasks.get(request.by, request.params.task_id, request.query.wait ?? 0),
      );
    }

    app.post(
      '/cloud/v1/tasks/:task_id/acknowledge',
      {
        schema: {
          operationId: 'acknowledgeTask',
          summary: 'Acknowledge a task',
          tags,
          params: TaskPath,
          response: { 200: Task },
        },
      },
      (request) => tasks.acknowledge(request.by, request.params.task_id),
    );

    app.post(
      '/cloud/v1/tasks/acknowledge_all',
      {
        schema: {
          operationId: 'acknowledgeAllTasks',
          summary: 'Acknowledge all tasks, or those of a project or region',
          tags,
          querystring: AcknowledgeAll,
          response: nothing,
        },
      },
      async (request, reply) => {
        await tasks.acknowledgeMany(request.by, request.query);
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/cloud/v1/tasks/acknowledge',
      {
        schema: {
          operationId: 'acknowledgeTasks',
          summary: 'Acknowledge the named tasks, or all',
          tags,
          deprecated: true,
          querystring: AcknowledgeAll,
          body: AcknowledgeTasks,
          response: nothing,
        },
      },
      async (request, reply) => {
        await tasks.acknowledgeMany(request.by, request.query, request.body);
        return reply.code(204).send(null);
      },
    );
  };
}
