/** Requests and responses of registries (docs/interface.md, "Registries"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, ProjectRegion } from '../../http/shapes.ts';

/** The grammar of distribution. */
export const repositoryPattern = '^[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*)*$';

export const RegistryPath = Type.Object({ ...ProjectRegion.properties, registry_id: IntegerId });
export const RepositoryPath = Type.Object({
  ...RegistryPath.properties,
  repository_name: Type.String({
    pattern: repositoryPattern,
    maxLength: 255,
    description: 'without the prefix of the registry; a slash in it is written %2F',
  }),
});
export const ArtifactPath = Type.Object({
  ...RepositoryPath.properties,
  digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$', maxLength: 71 }),
});
export const TagPath = Type.Object({
  ...ArtifactPath.properties,
  tag_name: Type.String({ pattern: '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$', maxLength: 128 }),
});
export const UserPath = Type.Object({ ...RegistryPath.properties, user_id: IntegerId });

const maxStorageLimit = 1000;
const StorageLimit = Type.Integer({ minimum: 1, maximum: maxStorageLimit, default: 5, description: 'GiB' });

export const CreateRegistry = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z][-a-z0-9]{0,22}[a-z0-9]$', maxLength: 24 }),
    storage_limit: Type.Optional(StorageLimit),
  },
  { additionalProperties: false },
);
export type CreateRegistry = Static<typeof CreateRegistry>;

export const ResizeRegistry = Type.Object(
  { storage_limit: Type.Optional(StorageLimit) },
  { additionalProperties: false },
);
export type ResizeRegistry = Static<typeof ResizeRegistry>;

export const CheckRegistryLimits = Type.Object(
  { storage_limit: Type.Optional(Type.Integer({ minimum: 0, maximum: maxStorageLimit, default: 0 })) },
  { additionalProperties: false },
);

const instant = Type.String({ format: 'date-time' });

export const Registry = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  created_at: instant,
  updated_at: instant,
  repo_count: Type.Integer(),
  storage_limit: Type.Integer({ description: 'GiB' }),
  storage_used: Type.Integer({
    description: 'bytes, as the clients of the interface take it; each blob is counted once',
  }),
  url: Type.String({ description: 'What stands before the name of an image' }),
});
export type Registry = Static<typeof Registry>;
export const RegistryCollection = Collection(Registry);
export type RegistryCollection = Static<typeof RegistryCollection>;

/** Only what would be exceeded; empty when all fits. */
export const RegistryRequiredQuota = Type.Object({
  registry_count_limit: Type.Optional(Type.Integer()),
  registry_count_requested: Type.Optional(Type.Integer()),
  registry_count_usage: Type.Optional(Type.Integer()),
  registry_storage_limit: Type.Optional(Type.Integer()),
  registry_storage_requested: Type.Optional(Type.Integer()),
  registry_storage_usage: Type.Optional(Type.Integer()),
});
export type RegistryRequiredQuota = Static<typeof RegistryRequiredQuota>;

const Repository = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  registry_id: Type.Integer(),
  artifact_count: Type.Integer(),
  pull_count: Type.Integer(),
  created_at: instant,
  updated_at: instant,
});
export const RepositoryCollection = Collection(Repository);
export type RepositoryCollection = Static<typeof RepositoryCollection>;

const Tag = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  artifact_id: Type.Integer(),
  repository_id: Type.Integer(),
  pushed_at: instant,
  pulled_at: instant,
});
export const Artifact = Type.Object({
  id: Type.Integer(),
  digest: Type.String(),
  registry_id: Type.Integer(),
  repository_id: Type.Integer(),
  size: Type.Integer({ description: 'bytes, of the manifest and everything that it names' }),
  pushed_at: instant,
  pulled_at: Type.String({ format: 'date-time', description: '0001-01-01T00:00:00Z: never' }),
  tags: Type.Array(Tag),
});
export type Artifact = Static<typeof Artifact>;
export const ArtifactCollection = Collection(Artifact);

const Duration = Type.Integer({ minimum: -1, maximum: 365, description: 'days; -1: for ever, 0: expires at once' });

export const CreateRegistryUser = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z0-9]{1,16}$', maxLength: 16 }),
    duration: Duration,
    read_only: Type.Optional(Type.Boolean({ default: false })),
    secret: Type.Optional(
      Type.String({ maxLength: 255, pattern: '^\\P{Cc}*$', default: '', description: 'made up when empty' }),
    ),
  },
  { additionalProperties: false },
);
export type CreateRegistryUser = Static<typeof CreateRegistryUser>;

export const CreateRegistryUsers = Type.Object(
  { users: Type.Array(CreateRegistryUser, { minItems: 1, maxItems: 100 }) },
  { additionalProperties: false },
);

export const UpdateRegistryUser = Type.Object(
  { duration: Duration, read_only: Type.Optional(Type.Boolean()) },
  { additionalProperties: false },
);
export type UpdateRegistryUser = Static<typeof UpdateRegistryUser>;

const user = {
  id: Type.Integer(),
  name: Type.String(),
  created_at: instant,
  duration: Type.Integer(),
  expires_at: Type.String({ format: 'date-time', description: '9999-12-31T00:00:00Z: never' }),
  read_only: Type.Boolean(),
};
export const RegistryUser = Type.Object(user);
export type RegistryUser = Static<typeof RegistryUser>;
export const RegistryUserCollection = Collection(RegistryUser);
export type RegistryUserCollection = Static<typeof RegistryUserCollection>;

export const RegistryUserWithSecret = Type.Object({ ...user, secret: Type.String({ description: 'shown only here' }) });
export type RegistryUserWithSecret = Static<typeof RegistryUserWithSecret>;

/** Clients read one user here, but every secret is shown only once: the first user, and `results` with all of them. */
export const RegistryUsersWithSecrets = Type.Object({
  ...RegistryUserWithSecret.properties,
  ...Collection(RegistryUserWithSecret).properties,
});
export type RegistryUsersWithSecrets = Static<typeof RegistryUsersWithSecrets>;
