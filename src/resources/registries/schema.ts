/** Requests and responses of registries. */
import { type Static, Type } from 'typebox';
import { digestGrammar, repositoryGrammar, tagGrammar } from '../../drivers/registry.ts';
import { pattern } from '../../http/patterns.ts';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  noControlCharacters,
  RequiredQuota,
} from '../../http/shapes.ts';

const repositoryRule =
  'a repository name such as team/app: lowercase letters and digits, separated by `.`, `_`, `-` or `/`';

export const repositoryPattern = pattern(`^${repositoryGrammar}$`, repositoryRule);

/** In a path. The official clients document that a slash is encoded twice, so one may arrive as `%2F`. */
export const RepositoryName = Type.String({
  pattern: pattern(`^${repositoryGrammar}(%2[Ff]${repositoryGrammar})*$`, repositoryRule),
  maxLength: 500,
  description: 'Name of the repository without the prefix of the registry, such as `team/app`',
  examples: ['team/app'],
});
export const Digest = Type.String({
  pattern: pattern(`^${digestGrammar}$`, '`sha256:` and 64 hexadecimal digits'),
  maxLength: 71,
  description: 'Digest of the artifact',
  examples: ['sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
});
export const TagName = Type.String({
  pattern: pattern(`^${tagGrammar}$`, '1 to 128 letters, digits, `_`, `.` and `-`, not starting with `.` or `-`'),
  maxLength: 128,
  description: 'Name of the tag',
  examples: ['v1'],
});

export const defaultStorageLimit = 5;
const maxStorageLimit = 1000;
const StorageLimit = Type.Integer({
  minimum: 1,
  maximum: maxStorageLimit,
  default: defaultStorageLimit,
  description: 'Storage limit in GiB',
});

const registryNameRule = '2 to 24 lowercase letters, digits and `-`, starting with a letter and not ending with `-`';

export const CreateRegistry = Body('CreateRegistry', [{ name: 'images', storage_limit: 10 }], {
  name: Type.String({
    pattern: pattern('^[a-z][-a-z0-9]{0,22}[a-z0-9]$', registryNameRule),
    maxLength: 24,
    description: `${registryNameRule}; unique in the project and region`,
  }),
  storage_limit: Type.Optional(StorageLimit),
});
export type CreateRegistry = Static<typeof CreateRegistry>;

export const ResizeRegistry = Body('ResizeRegistry', [{ storage_limit: 20 }], {
  storage_limit: Type.Optional(Described(StorageLimit, 'New storage limit in GiB')),
});

export const CheckRegistryLimits = Body('CheckRegistryLimits', [{ storage_limit: 10 }], {
  storage_limit: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      default: 0,
      description: 'Storage limit of the planned registry in GiB',
    }),
  ),
});

export const Registry = Component('Registry', {
  id: Type.Integer({ description: 'ID of the registry' }),
  name: Type.String({ description: 'Name of the registry' }),
  created_at: Described(DateTime, 'When the registry was created'),
  updated_at: Described(DateTime, 'When the registry last changed'),
  repo_count: Type.Integer({ description: 'Number of repositories' }),
  storage_limit: Type.Integer({ description: 'Storage limit in GiB' }),
  // Clients of the interface expect bytes here, although the limit is in GiB.
  storage_used: Type.Integer({ description: 'Storage in use in bytes; each blob is counted once' }),
  url: Type.String({
    description: 'Prefix of image names, `host:port/prefix`; an image is `<url>/<repository>:<tag>`',
  }),
});
export type Registry = Static<typeof Registry>;
export const RegistryCollection = Collection(Registry);

export const RegistryRequiredQuota = RequiredQuota('RegistryRequiredQuota', {
  registry_count_limit: 'Limit of the number of registries',
  registry_count_requested: 'Number of registries requested',
  registry_count_usage: 'Number of registries in use',
  registry_storage_limit: 'Limit of the sum of all storage limits in GiB',
  registry_storage_requested: 'Storage limit requested in GiB',
  registry_storage_usage: 'Sum of all storage limits in GiB',
});
export type RegistryRequiredQuota = Static<typeof RegistryRequiredQuota>;

const Repository = Component('RegistryRepository', {
  id: Type.Integer({ description: 'ID of the repository' }),
  name: Type.String({ description: 'Name of the repository without the prefix of the registry' }),
  registry_id: Type.Integer({ description: 'ID of the registry' }),
  artifact_count: Type.Integer({ description: 'Number of artifacts' }),
  pull_count: Type.Integer({ description: 'Number of pulls' }),
  created_at: Described(DateTime, 'When the repository was first pushed to'),
  updated_at: Described(DateTime, 'When the repository last changed'),
});
export type Repository = Static<typeof Repository>;
export const RepositoryCollection = Collection(Repository);

const times = {
  pushed_at: Described(DateTime, 'When it was last pushed'),
  pulled_at: Described(DateTime, 'When it was last pulled; `0001-01-01T00:00:00Z`: never'),
};
const RegistryTag = Component('RegistryTag', {
  id: Type.Integer({ description: 'ID of the tag' }),
  name: Type.String({ description: 'Name of the tag' }),
  artifact_id: Type.Integer({ description: 'ID of the artifact' }),
  repository_id: Type.Integer({ description: 'ID of the repository' }),
  ...times,
});
export const Artifact = Component('RegistryArtifact', {
  id: Type.Integer({ description: 'ID of the artifact' }),
  digest: Type.String({ description: 'Digest of the manifest, `sha256:<hex>`' }),
  registry_id: Type.Integer({ description: 'ID of the registry' }),
  repository_id: Type.Integer({ description: 'ID of the repository' }),
  size: Type.Integer({
    description:
      'Size in bytes of the manifest and of everything that it refers to. That of an index includes the sizes of its ' +
      'images; a layer of several images counts for each',
  }),
  ...times,
  tags: Type.Array(RegistryTag, { description: 'Tags of the artifact' }),
});
export type Artifact = Static<typeof Artifact>;
export const ArtifactCollection = Collection(Artifact);

const Duration = Type.Integer({
  minimum: -1,
  maximum: 365,
  description: 'Days until the user expires, from now; -1: never, 0: at once',
});
const user = { name: 'ci', duration: 30, read_only: false };

const userNameRule = '1 to 16 lowercase letters and digits';

export const CreateRegistryUser = Body('CreateRegistryUser', [user], {
  name: Type.String({
    pattern: pattern('^[a-z0-9]{1,16}$', userNameRule),
    maxLength: 16,
    description: `${userNameRule}; unique in the registry`,
  }),
  duration: Duration,
  read_only: Type.Optional(Type.Boolean({ default: false, description: 'Whether the user can only pull' })),
  secret: Type.Optional(
    Type.String({
      maxLength: 255,
      pattern: noControlCharacters,
      default: '',
      description: 'Up to 255 characters without control characters; generated when empty',
    }),
  ),
});
export type CreateRegistryUser = Static<typeof CreateRegistryUser>;

export const CreateRegistryUsers = Body(
  'CreateRegistryUsers',
  [{ users: [user, { name: 'deploy', duration: -1, read_only: true }] }],
  {
    users: Type.Array(CreateRegistryUser, {
      minItems: 1,
      maxItems: 100,
      description: 'The users, at most 100, with different names',
    }),
  },
);

export const UpdateRegistryUser = Body('UpdateRegistryUser', [{ duration: 90, read_only: true }], {
  duration: Duration,
  read_only: Type.Optional(Type.Boolean({ description: 'Whether the user can only pull; unchanged when omitted' })),
});
export type UpdateRegistryUser = Static<typeof UpdateRegistryUser>;

const userFields = {
  id: Type.Integer({ description: 'ID of the user' }),
  name: Type.String({ description: 'Name with which the user logs in' }),
  created_at: Described(DateTime, 'When the user was created'),
  duration: Type.Integer({ description: 'Days from the last request that set it until the user expires; -1: never' }),
  expires_at: Described(DateTime, 'When the user expires; `9999-12-31T00:00:00Z`: never'),
  read_only: Type.Boolean({ description: 'Whether the user can only pull' }),
};
export const RegistryUser = Component('RegistryUser', userFields);
export type RegistryUser = Static<typeof RegistryUser>;
export const RegistryUserCollection = Collection(RegistryUser);

export const RegistryUserWithSecret = Component('RegistryUserWithSecret', {
  ...userFields,
  secret: Type.String({ description: 'Secret with which the user logs in; never returned again' }),
});
export type RegistryUserWithSecret = Static<typeof RegistryUserWithSecret>;

/** The Go SDK (0.50) expects a single user here, the Python SDK (0.59) all of them. */
export const RegistryUsersWithSecrets = Component(
  'RegistryUsersWithSecrets',
  { ...RegistryUserWithSecret.properties, ...Collection(RegistryUserWithSecret).properties },
  'All new users in `results`; the other fields are those of the first one',
);
export type RegistryUsersWithSecrets = Static<typeof RegistryUsersWithSecrets>;
