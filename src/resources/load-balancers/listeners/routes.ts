/** The operations of listeners. */
import { projectMember, projectReader } from '../../../authz/access.ts';
import { atLeast, type RequestContext } from '../../../authz/actor.ts';
import { IdOf } from '../../../http/path-parameters.ts';
import { operationsOf } from '../../../http/operations.ts';
import { TaskIds } from '../../../http/shapes.ts';
import { errorsOfListener, errorsOfListenerUpdate } from '../body-errors.ts';
import {
  CreateListener,
  DeleteListener,
  GetListener,
  Listener,
  ListenerCollection,
  ListListeners,
  RenameListener,
  UpdateListener,
} from './schema.ts';
import type { Listeners } from './service.ts';

const tag = {
  name: 'Load balancer listeners',
  description:
    'The ports of a load balancer. A listener accepts connections or requests on one port and passes them to its ' +
    'default pool; without a pool, clients get 503 or a closed connection. `TERMINATED_HTTPS` listeners decrypt TLS ' +
    'with certificates that are stored as secrets.\n\n' +
    'A listener is ready once `provisioning_status` is `ACTIVE`. After a failed task it is `ERROR`; the same update ' +
    'again is another attempt. While a task changes the load balancer, changes of its listeners fail with 409.',
};
const operation = operationsOf(tag, { listener_id: IdOf('the listener') });
const all = '/cloud/v1/lblisteners/:project_id/:region_id';
const one = `${all}/:listener_id`;

const mayReadPasswords = ({ actor }: RequestContext) => atLeast(actor, 'member');

export const listenerOperations = (listeners: Listeners) => [
  operation('POST', all, {
    id: 'createListener',
    summary: 'Create a listener',
    access: projectMember,
    body: CreateListener,
    bodyErrors: errorsOfListener,
    response: TaskIds,
    handle: ({ by, scope, body }) => listeners.create(by, scope, body),
  }),
  operation('GET', all, {
    id: 'listListeners',
    summary: 'List listeners',
    description: 'The oldest listener comes first.',
    access: projectReader,
    query: ListListeners,
    response: ListenerCollection,
    handle: ({ by, scope, query }) => listeners.list(scope, query, { showPasswords: mayReadPasswords(by) }),
  }),
  operation('GET', one, {
    id: 'getListener',
    summary: 'Get a listener',
    access: projectReader,
    query: GetListener,
    response: Listener,
    handle: ({ by, scope, params, query }) =>
      listeners.get(scope, params.listener_id, {
        showStats: query.show_stats ?? false,
        showPasswords: mayReadPasswords(by),
      }),
  }),
  operation('PATCH', '/cloud/v2/lblisteners/:project_id/:region_id/:listener_id', {
    id: 'updateListener',
    summary: 'Update a listener',
    description: 'Omitted fields are unchanged and lists are replaced. The protocol and port cannot change.',
    access: projectMember,
    body: UpdateListener,
    bodyErrors: errorsOfListenerUpdate,
    response: TaskIds,
    handle: ({ by, scope, params, body }) => listeners.update(by, scope, params.listener_id, body),
  }),
  operation('PATCH', one, {
    id: 'updateListenerV1',
    summary: 'Rename a listener (v1)',
    description: 'Returns the listener instead of a task. Use v2.',
    deprecated: true,
    access: projectMember,
    body: RenameListener,
    response: Listener,
    handle: ({ by, scope, params, body }) => listeners.rename(by, scope, params.listener_id, body.name),
  }),
  operation('DELETE', one, {
    id: 'deleteListener',
    summary: 'Delete a listener',
    description: 'The default pool remains unless `delete_default_pool` is true.',
    access: projectMember,
    query: DeleteListener,
    response: TaskIds,
    handle: ({ by, scope, params, query }) =>
      listeners.delete(by, scope, params.listener_id, { deleteDefaultPool: query.delete_default_pool ?? false }),
  }),
];
