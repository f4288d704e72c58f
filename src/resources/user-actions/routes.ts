/** The operations of user actions. */
import { tokenAdmin, tokenReader } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { Page } from '../../http/shapes.ts';
import { sendInGroups } from '../../http/streamed-list.ts';
import {
  ListUserActions,
  Subscribe,
  SubscriptionCollection,
  UserActionCollection,
  UserActionDelivery,
  UserActionId,
} from './schema.ts';
import type { UserActions } from './service.ts';

const operation = operationsOf(
  {
    name: 'User actions',
    description:
      'The changes of a client in the official shape: entries of the audit log whose operation has an official name. A ' +
      'subscription sends each action to a URL, as a signed POST request.',
  },
  { user_action_id: UserActionId },
);
const all = '/cloud/v1/user_actions';
const delivery = '/cloudyard/v1/user_actions/:user_action_id/delivery';

export const userActionOperations = ({ userActions }: { userActions: UserActions }) => [
  operation('GET', all, {
    id: 'listUserActions',
    summary: 'List user actions',
    description: 'The newest action comes first by default. Admins of the operator see the actions of all clients.',
    access: tokenReader,
    query: ListUserActions,
    response: UserActionCollection,
    handle: async ({ by, query }, reply) => sendInGroups(reply, await userActions.list(by.actor, query)),
  }),
  operation('POST', `${all}/subscribe`, {
    id: 'subscribeToUserActions',
    summary: 'Subscribe to user actions',
    description: 'A client has one subscription. It has the actions from now on.',
    access: tokenAdmin,
    body: Subscribe,
    bodyErrors: userActions.bodyErrors,
    handle: ({ by, body }) => userActions.subscribe(by, body),
  }),
  operation('POST', `${all}/unsubscribe`, {
    id: 'unsubscribeFromUserActions',
    summary: 'Unsubscribe from user actions',
    description: 'Deletes the subscription of the client. Actions that were not delivered yet are not sent.',
    access: tokenAdmin,
    handle: ({ by }) => userActions.unsubscribe(by),
  }),
  operation('GET', `${all}/subscriptions_list`, {
    id: 'listUserActionSubscriptions',
    summary: 'List the subscriptions of the client',
    access: tokenAdmin,
    query: Page,
    response: SubscriptionCollection,
    handle: ({ by, query }) => userActions.listSubscriptions(by.actor, query),
  }),
  operation('GET', delivery, {
    id: 'getUserActionDelivery',
    summary: 'Get the delivery of a user action',
    description: 'The delivery to the subscription of the client; 404 for actions from before it.',
    access: tokenAdmin,
    response: UserActionDelivery,
    handle: ({ by, params }) => userActions.getDelivery(by.actor, params.user_action_id),
  }),
  operation('POST', `${delivery}/replay`, {
    id: 'replayUserActionDelivery',
    summary: 'Repeat the delivery of a user action',
    description: 'Sends the action again under the same ID. More than 24 hours after the action it is attempted once.',
    access: tokenAdmin,
    response: UserActionDelivery,
    handle: ({ by, params }) => userActions.replayDelivery(by, params.user_action_id),
  }),
];
