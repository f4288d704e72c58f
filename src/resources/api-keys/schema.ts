/** Requests and responses of API keys (docs/interface.md, "API keys"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Nullable, Paging } from '../../http/shapes.ts';

/** Of keys and of containers alike. */
const PlatformName = Type.String({ pattern: '^[a-z][-a-z0-9]{0,62}[a-z0-9]$', maxLength: 64 });
const Namespace = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^[^\\u0000-\\u001F\\u007F-\\u009F]*$',
  description: '1 to 255 characters, none of them a control character',
});
const Container = Type.Object({ name: PlatformName, namespace: Namespace }, { additionalProperties: false });
export type Container = Static<typeof Container>;

const Containers = Type.Array(Container, {
  maxItems: 10_000,
  description: 'The containers that the key opens; with none it opens nothing',
});
const Description = Type.String({ maxLength: 1000 });
const Expire = Nullable(
  Type.String({ format: 'iso-date-time', description: 'When it ends; UTC where it has no zone; null: never' }),
);

export const ApiKeyPath = Type.Object({ project_id: IntegerId, region_id: IntegerId, key_name: PlatformName });

export const CreateApiKey = Type.Object(
  {
    name: PlatformName,
    containers: Containers,
    description: Type.Optional({ ...Description, default: '' }),
    expire: Type.Optional(Expire),
    is_disabled: Type.Optional(Type.Boolean({ default: false })),
  },
  { additionalProperties: false },
);
export type CreateApiKey = Static<typeof CreateApiKey>;

export const UpdateApiKey = Type.Object(
  {
    containers: Type.Optional(Nullable(Containers)),
    description: Type.Optional(Nullable(Description)),
    expire: Type.Optional(Expire),
    is_disabled: Type.Optional(Nullable(Type.Boolean())),
  },
  { additionalProperties: false, description: 'What is absent stays; null clears, and enables a key' },
);
export type UpdateApiKey = Static<typeof UpdateApiKey>;

export const ListApiKeys = Type.Object(Paging(1000));
export type ListApiKeys = Static<typeof ListApiKeys>;

const keyFields = {
  name: Type.String(),
  containers: Type.Array(Type.Object({ name: Type.String(), namespace: Type.String() })),
  created_at: Type.String({ format: 'date-time', description: 'When it starts to work' }),
  description: Type.String(),
  expire: Nullable(Type.String({ format: 'date-time' })),
  is_disabled: Type.Boolean(),
  source: Type.Enum(['cloud', 'iate']),
  status: Type.Enum(['active', 'disabled', 'expired', 'pending'], { description: 'What holds now' }),
};
export const ApiKey = Type.Object(keyFields);
export type ApiKey = Static<typeof ApiKey>;
export const CreatedApiKey = Type.Object({
  ...keyFields,
  secret: Type.String({ description: 'What clients send as `X-API-Key`: shown here and never again' }),
});
export type CreatedApiKey = Static<typeof CreatedApiKey>;
export const ApiKeyCollection = Collection(ApiKey);

/** A proxy that asks for a whole path names the container there, where no client can. */
export const AuthorizePath = Type.Object({
  project_id: IntegerId,
  region_id: IntegerId,
  namespace: Namespace,
  name: PlatformName,
});
export const AuthorizeQuery = Type.Object({
  name: Type.Optional(PlatformName),
  namespace: Type.Optional(Namespace),
  project_id: Type.Optional(IntegerId),
  region_id: Type.Optional(IntegerId),
});
export type AuthorizeQuery = Static<typeof AuthorizeQuery>;
