/** Requests and responses of L7 policies. */
import { type Static, Type } from 'typebox';
import { pattern } from '../../../http/patterns.ts';
import { l7Limits, redirectCodes } from '../../../drivers/l7-rules.ts';
import {
  Body,
  Collection,
  Component,
  Described,
  exampleUuid,
  Name,
  namePattern,
  nameRule,
  Nullable,
  OrNull,
  PlaceFields,
  Uuid,
} from '../../../http/shapes.ts';
import { statuses } from '../shapes.ts';

export { l7Limits, nameRule };

const meanings = {
  name: 'Name of the policy; empty by default',
  position:
    'Position among the policies of the listener, from 1. A new policy moves those from its position down; without a ' +
    'position, or with one beyond the end, it is the last',
  redirect_http_code: `Status of the redirect, ${redirectCodes.join(', ')}, for REDIRECT_TO_URL and REDIRECT_PREFIX`,
  redirect_pool_id: 'ID of the pool that gets the requests, for REDIRECT_TO_POOL: a pool of the same load balancer',
  redirect_prefix: 'URL that the path and query of the request are appended to, for REDIRECT_PREFIX',
  redirect_url: 'URL that requests are redirected to, for REDIRECT_TO_URL',
  tags: 'Labels',
};

const Action = Type.Enum(['REDIRECT_PREFIX', 'REDIRECT_TO_POOL', 'REDIRECT_TO_URL', 'REJECT'], {
  title: 'L7PolicyAction',
  description:
    'What happens to requests that match all rules. `REJECT`: 403; `REDIRECT_TO_URL`: redirected to `redirect_url`; ' +
    '`REDIRECT_PREFIX`: redirected to `redirect_prefix` with their path and query; `REDIRECT_TO_POOL`: served by ' +
    '`redirect_pool_id`',
});
export const L7Tags = Type.Array(
  Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: pattern('^[^\\x00-\\x1f\\x7f]*$', 'text without control characters'),
  }),
  {
    title: 'L7Tags',
    maxItems: 50,
    uniqueItems: true,
    description: meanings.tags,
  },
);
const Url = Type.String({ maxLength: 255 });

const nameMeaning = `Name of the policy: ${nameRule}; empty by default`;

const settings = {
  action: Action,
  name: Type.Optional(Described(Name, nameMeaning)),
  position: Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: meanings.position })),
  redirect_http_code: Type.Optional(
    Described(Nullable(Type.Enum([...redirectCodes])), `${meanings.redirect_http_code}; 302 by default`),
  ),
  redirect_pool_id: Type.Optional(Described(Nullable(Uuid), meanings.redirect_pool_id)),
  redirect_prefix: Type.Optional(Described(Nullable(Url), meanings.redirect_prefix)),
  redirect_url: Type.Optional(Described(Nullable(Url), meanings.redirect_url)),
  tags: Type.Optional(L7Tags),
};

export const CreateL7Policy = Body(
  'CreateL7Policy',
  [{ action: 'REDIRECT_PREFIX', listener_id: exampleUuid, redirect_prefix: 'https://www.example.com', position: 1 }],
  { ...settings, listener_id: Described(Uuid, 'ID of an HTTP or TERMINATED_HTTPS listener') },
);
export type CreateL7Policy = Static<typeof CreateL7Policy>;

/** Empty, as a policy without a name reads. */
const CurrentName = Type.String({
  pattern: pattern(`^(${namePattern})?$`, nameRule),
  maxLength: 63,
  description: `${nameMeaning}. It may be empty only if the policy has no name`,
});

export const UpdateL7Policy = Body(
  'UpdateL7Policy',
  [{ action: 'REDIRECT_TO_URL', redirect_url: 'https://www.example.com/', redirect_http_code: 301 }],
  { ...settings, name: Type.Optional(CurrentName) },
  'The target of the action is required; other omitted fields are unchanged',
);
export type UpdateL7Policy = Static<typeof UpdateL7Policy>;

export const TaskId = Described(Nullable(Uuid), 'ID of the task that locks the load balancer; null: not locked');

export const L7Policy = Component('L7Policy', {
  id: Described(Uuid, 'ID of the policy'),
  ...statuses,
  ...PlaceFields,
  action: Action,
  listener_id: Described(Uuid, 'ID of the listener'),
  name: Type.String({ description: meanings.name }),
  position: Type.Integer({ description: meanings.position }),
  redirect_http_code: OrNull.integer(meanings.redirect_http_code),
  redirect_pool_id: Described(Nullable(Uuid), meanings.redirect_pool_id),
  redirect_prefix: OrNull.text(meanings.redirect_prefix),
  redirect_url: OrNull.text(meanings.redirect_url),
  rules: Type.Array(Component('L7RuleReference', { id: Described(Uuid, 'ID of the rule'), ...PlaceFields }), {
    description: `Rules, at most ${l7Limits.rulesOfPolicy}; a request must match all. Without rules none matches`,
  }),
  tags: Type.Array(Type.String(), { description: meanings.tags }),
  task_id: TaskId,
});
export type L7Policy = Static<typeof L7Policy>;
export const L7PolicyCollection = Collection(L7Policy);
