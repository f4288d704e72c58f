/** Requests and responses of user actions (docs/interface.md, "User actions"). */
import { type Static, Type } from 'typebox';
import { pattern } from '../../http/patterns.ts';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  FilterId,
  Instant,
  maxFilterValues,
  Nullable,
  OrNull,
  Paging,
  ShortText,
} from '../../http/shapes.ts';
import { Attempt, State } from '../notifications/schema.ts';
import { actionTypes, apiGroups, resourceTypes } from './actions.ts';

const filter = (noun: string) => ({ maxItems: maxFilterValues, description: `Only actions ${noun}` });
const Order = Type.Enum(['asc', 'desc'], { description: 'Order by time; `desc` by default' });
const Action = Type.Enum([...actionTypes], { title: 'UserActionType', description: 'Type of the action' });
const Group = Type.Enum([...apiGroups], { title: 'UserActionGroup', description: 'Group of operations' });

export const ListUserActions = Type.Object({
  ...Paging(1000),
  action_type: Type.Optional(Type.Array(Action, filter('of these types'))),
  api_group: Type.Optional(Type.Array(Group, filter('in these groups'))),
  from_timestamp: Type.Optional(Described(Instant, 'Only actions at or after this date')),
  to_timestamp: Type.Optional(Described(Instant, 'Only actions at or before this date')),
  order_by: Type.Optional(Order),
  sorting: Type.Optional(Type.Unsafe<'asc' | 'desc'>({ ...Order, deprecated: true, description: 'Use `order_by`' })),
  project_id: Type.Optional(Type.Array(FilterId, filter('in these projects'))),
  region_id: Type.Optional(Type.Array(FilterId, filter('in these regions'))),
  resource_id: Type.Optional(Type.Array(ShortText, filter('on resources with these IDs'))),
  search_field: Type.Optional(Described(ShortText, 'Only actions on resources with this name')),
  source_user_ips: Type.Optional(Type.Array(ShortText, filter('from these addresses'))),
  user_agents: Type.Optional(Type.Array(ShortText, filter('with these user agents'))),
});
export type ListUserActions = Static<typeof ListUserActions>;

const Json = (description: string) =>
  Nullable(Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true, description }));

const ActionResource = Component('UserActionResource', {
  resource_id: Type.String({ description: 'ID of the resource' }),
  resource_type: Type.Enum([...new Set(Object.values(resourceTypes))], { description: 'Type of the resource' }),
  resource_body: Json('The fields that changed, or all fields of a new or deleted resource; secrets are redacted'),
  search_field: OrNull.text('Name of the resource, if it is among the changed fields'),
});

const Price = Component('UserActionPrice', {
  currency_code: OrNull.text('ISO 4217 code'),
  price_per_hour: OrNull.number('Price per hour'),
  price_per_month: OrNull.number('Price per month'),
  price_status: Type.Enum(['error', 'hide', 'show'], { description: 'Whether the price is known' }),
});

export const UserAction = Component('UserAction', {
  id: Type.String({ description: 'ID of the entry of the audit log' }),
  timestamp: Described(DateTime, 'When the action was accepted'),
  action_type: Action,
  api_group: Group,
  acknowledged: Type.Boolean({ description: 'Whether the subscriber has received it' }),
  action_data: Json('`operation` and `request_id` of the request'),
  client_id: OrNull.integer('ID of the client'),
  project_id: OrNull.integer('ID of the project'),
  region_id: OrNull.integer('ID of the region'),
  user_id: Type.Integer({ description: 'ID of the token; 0 for a command on the host' }),
  token_id: OrNull.integer('ID of the token; null for a command on the host'),
  issued_by_user_id: OrNull.integer('Always null'),
  email: OrNull.text('Always null'),
  source_user_ip: OrNull.text('Address of the client of the request'),
  user_agent: OrNull.text('User-Agent of the request'),
  task_id: OrNull.text('ID of the task that the action started; null: none, or it was removed'),
  is_complete: Type.Boolean({ description: 'false: the entry was too large and is cut off' }),
  resources: Type.Array(ActionResource, { description: 'The resources that the action changed' }),
  total_price: Described(Nullable(Price), 'Always null'),
});
export type UserAction = Static<typeof UserAction>;

export const UserActionCollection = Collection(UserAction);

export const Subscribe = Body(
  'SubscribeToUserActions',
  [
    {
      url: 'https://siem.example.com/cloudyard',
      auth_header_name: 'Authorization',
      auth_header_value: 'Bearer s3cret',
    },
  ],
  {
    url: Type.String({ maxLength: 2000, format: 'uri', description: 'URL that begins with `https://` or `http://`' }),
    auth_header_name: Type.String({
      maxLength: 100,
      pattern: pattern("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", 'the name of a header'),
      description: 'Name of a header of each call, as HTTP allows it: without spaces and colons',
    }),
    auth_header_value: Type.String({
      maxLength: 1000,
      pattern: pattern('^[!-~]([ -~]*[!-~])?$', 'printable ASCII without spaces at the ends'),
      description:
        'Value of that header, printable ASCII without spaces at the ends. It is also the key of the signature ' +
        '(HMAC-SHA256) of each call',
    }),
  },
);
export type Subscribe = Static<typeof Subscribe>;

export const Subscription = Component('UserActionSubscription', {
  id: Type.Integer({ description: 'ID of the subscription' }),
  url: Type.String({ description: 'URL of the receiver' }),
  auth_header_name: Type.String({ description: 'Name of a header of each call' }),
  auth_header_value: Type.String({ description: 'Value of that header' }),
});
export type Subscription = Static<typeof Subscription>;

export const SubscriptionCollection = Collection(Subscription);

/** In the path. Entries of the audit log are numbered beyond 32 bits. */
export const UserActionId = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'ID of the user action',
  examples: [1],
});

export const UserActionDelivery = Component('UserActionDelivery', {
  user_action_id: Type.String({ description: 'ID of the user action' }),
  state: State,
  failures: Type.Integer({ description: 'Failed attempts since the last replay' }),
  next_attempt_at: Described(Nullable(DateTime), 'When the next attempt is due; null when there is none'),
  attempts: Type.Array(Attempt, { description: 'The last attempts, oldest first' }),
});
export type UserActionDelivery = Static<typeof UserActionDelivery>;
