/** The operations of tasks. */
import { projectReader, tokenMember, tokenReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { IdOf } from '../../http/path-parameters.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import {
  AcknowledgeAll,
  AcknowledgeTasks,
  GetTask,
  ListActiveTasks,
  ListTasks,
  Task,
  TaskCollection,
} from './schema.ts';
import type { TaskViews } from './service.ts';

const operation = operationsOf(
  {
    name: 'Tasks',
    description:
      'A task is the work that a request started. `state` goes from `NEW` and `RUNNING` to `FINISHED` or `ERROR`; ' +
      '`created_resources` has the IDs of new resources, `error` the reason of a failure.',
  },
  { task_id: IdOf('the task') },
);

/** Clients poll either path; the SDKs poll /cloud/v1/tasks. */
const getTask = (tasks: TaskViews, id: string, path: `${string}/:task_id`) =>
  operation('GET', path as '/v1/tasks/:task_id', {
    id,
    summary: 'Get a task',
    description: 'With `wait` the response is sent as soon as the task ends.',
    access: tokenReader,
    query: GetTask,
    response: Task,
    handle: ({ by, params, query }) => tasks.get(by, params.task_id, query.wait ?? 0),
  });

export const taskOperations = ({ taskViews: tasks }: { taskViews: TaskViews }) => [
  operation('GET', '/cloud/v1/tasks', {
    id: 'listTasks',
    summary: 'List tasks',
    description: 'The newest task comes first by default.',
    access: tokenReader,
    query: ListTasks,
    response: TaskCollection,
    handle: async ({ by, query }, reply) => sendInGroups(reply, await tasks.list(by.actor, query)),
  }),
  operation('GET', '/cloud/v1/tasks/:project_id/:region_id/active', {
    id: 'listActiveTasks',
    summary: 'List the active tasks of a project',
    description: 'Lists tasks that have not ended. The newest comes first.',
    access: projectReader,
    query: ListActiveTasks,
    response: TaskCollection,
    handle: async ({ by, scope, query }, reply) => sendInGroups(reply, await tasks.listActive(by.actor, scope, query)),
  }),
  getTask(tasks, 'getTask', '/cloud/v1/tasks/:task_id'),
  getTask(tasks, 'getTaskShort', '/v1/tasks/:task_id'),
  operation('POST', '/cloud/v1/tasks/:task_id/acknowledge', {
    id: 'acknowledgeTask',
    summary: 'Acknowledge a task',
    access: tokenMember,
    response: Task,
    handle: ({ by, params }) => tasks.acknowledge(by, params.task_id),
  }),
  operation('POST', '/cloud/v1/tasks/acknowledge_all', {
    id: 'acknowledgeAllTasks',
    summary: 'Acknowledge all tasks',
    description: 'The query limits it to the tasks of a project or region.',
    access: tokenMember,
    query: AcknowledgeAll,
    handle: ({ by, query }) => tasks.acknowledgeMany(by, query),
  }),
  operation('POST', '/cloud/v1/tasks/acknowledge', {
    id: 'acknowledgeTasks',
    summary: 'Acknowledge several tasks',
    description: 'Without IDs all tasks are acknowledged. Use `acknowledge_all`.',
    deprecated: true,
    access: tokenMember,
    query: AcknowledgeAll,
    body: AcknowledgeTasks,
    handle: ({ by, query, body }) => tasks.acknowledgeMany(by, query, body),
  }),
];
