/** Requests and responses of API keys. */
import { type Static, Type } from 'typebox';
import { pattern } from '../../http/patterns.ts';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  extending,
  Input,
  Instant,
  IntegerId,
  noControlCharacters,
  Nullable,
} from '../../http/shapes.ts';

const nameRule = '2 to 64 lowercase letters, digits and `-`, starting with a letter and not ending with `-`';
const namespaceRule = '1 to 255 characters without control characters';

/** Names of keys and of containers. */
export const PlatformName = Type.String({
  pattern: pattern('^[a-z][-a-z0-9]{0,62}[a-z0-9]$', nameRule),
  maxLength: 64,
  description: nameRule,
});
export const Namespace = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: noControlCharacters,
  description: namespaceRule,
});
const Container = Input('ApiKeyContainerInput', {
  name: Described(PlatformName, `Name of the container: ${nameRule}`),
  namespace: Described(Namespace, `Namespace of the container: ${namespaceRule}`),
});
export type Container = Static<typeof Container>;

const containersRule = 'Containers that the key opens, at most 10,000; a key without containers opens none';
const Containers = Type.Array(Container, { maxItems: 10_000, description: containersRule });
const Description = Type.String({ maxLength: 1000, description: 'Any text' });
const Expire = Described(Nullable(Instant), 'When the key expires, ISO 8601, UTC if it has no offset; null: never');
const isDisabled = 'Whether the key opens nothing for now';
const container = { name: 'web', namespace: 'default' };

export const CreateApiKey = Body(
  'CreateApiKey',
  [{ name: 'first-key', containers: [container], expire: '2030-01-01T00:00:00Z' }],
  {
    name: Described(PlatformName, `${nameRule}; unique in the project and region`),
    containers: Containers,
    description: Type.Optional({ ...Description, default: '' }),
    expire: Type.Optional(Expire),
    is_disabled: Type.Optional(Type.Boolean({ default: false, description: isDisabled })),
  },
);
export type CreateApiKey = Static<typeof CreateApiKey>;

export const UpdateApiKey = Body(
  'UpdateApiKey',
  [{ containers: [container, { name: 'api', namespace: 'default' }], expire: null }],
  {
    containers: Type.Optional(Described(Nullable(Containers), `${containersRule}; null: none`)),
    description: Type.Optional(Described(Nullable(Description), 'Any text; null: none')),
    expire: Type.Optional(Expire),
    is_disabled: Type.Optional(Described(Nullable(Type.Boolean()), `${isDisabled}; null: unchanged`)),
  },
  'Omitted fields are unchanged',
);
export type UpdateApiKey = Static<typeof UpdateApiKey>;

const ApiKeyContainer = Component('ApiKeyContainer', {
  name: Type.String({ description: 'Name of the container' }),
  namespace: Type.String({ description: 'Namespace of the container' }),
});
const keyFields = {
  name: Type.String({ description: 'Name of the key' }),
  containers: Type.Array(ApiKeyContainer, { description: 'Containers that the key opens' }),
  created_at: Described(DateTime, 'When the key was created'),
  description: Type.String({ description: 'Text of the client' }),
  expire: Described(Nullable(DateTime), 'When the key expires; null: never'),
  is_disabled: Type.Boolean({ description: isDisabled }),
  source: Type.Enum(['cloud', 'iate'], { description: 'Always `cloud`' }),
  status: Type.Enum(['active', 'disabled', 'expired', 'pending'], {
    description: 'State of the key; `pending`: this server has not read the key yet',
  }),
};
export const ApiKey = Component('ApiKey', keyFields);
export type ApiKey = Static<typeof ApiKey>;
export const CreatedApiKey = Type.Object(
  {
    ...keyFields,
    secret: Type.String({ description: 'What clients send in the header `X-API-Key`; never returned again' }),
  },
  { title: 'CreatedApiKey', ...extending(ApiKey) },
);
export type CreatedApiKey = Static<typeof CreatedApiKey>;
export const ApiKeyCollection = Collection(ApiKey);

export const AuthorizeQuery = Type.Object({
  name: Type.Optional(Described(PlatformName, 'Name of the container')),
  namespace: Type.Optional(Described(Namespace, 'Namespace of the container')),
  project_id: Type.Optional(Described(IntegerId, 'ID of the project; when omitted, keys of any project are valid')),
  region_id: Type.Optional(Described(IntegerId, 'ID of the region; when omitted, keys of any region are valid')),
});
export type AuthorizeQuery = Static<typeof AuthorizeQuery>;
