/** Requests and responses of pull secrets (docs/interface.md, "Pull secrets"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Collection, IntegerId, Nullable, Paging } from '../../http/shapes.ts';

/** `.` and `..` would be lost in paths. */
const PullSecretName = Type.String({
  maxLength: 250,
  pattern: '^(\\.{3,}|\\.*[A-Za-z0-9_-][A-Za-z0-9._-]*)$',
  description: '1 to 250 letters, digits, `.`, `_` and `-`',
});
const Login = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^:\\u0000-\\u001F\\u007F-\\u009F]*$',
  description: 'Without a colon, where registries would end it',
});
const Password = Type.String({ minLength: 1, maxLength: 5000, format: 'password', writeOnly: true });
const Registry = Type.String({
  minLength: 1,
  maxLength: 400,
  description: 'As `docker login` takes it: `registry.example.com:5000`, `https://ghcr.io`, `docker.io`',
});

export const PullSecretPath = Type.Object({ project_id: IntegerId, region_id: IntegerId, secret_name: PullSecretName });

export const CreatePullSecret = Type.Object(
  { name: PullSecretName, registry: Registry, login: Login, password: Password },
  { additionalProperties: false },
);
export type CreatePullSecret = Static<typeof CreatePullSecret>;

export const UpdatePullSecret = Type.Object(
  {
    registry: Type.Optional(Nullable(Registry)),
    login: Type.Optional(Nullable(Login)),
    password: Type.Optional(Nullable(Password)),
  },
  { additionalProperties: false, description: 'What is absent or null stays' },
);
export type UpdatePullSecret = Static<typeof UpdatePullSecret>;

export const ListPullSecrets = Type.Object(Paging(1000));
export type ListPullSecrets = Static<typeof ListPullSecrets>;

/** The password is not among it, and never will be. */
export const PullSecret = Type.Object({
  name: Type.String(),
  registry: Type.String(),
  login: Type.String(),
  updated_at: Type.String({ format: 'date-time' }),
});
export type PullSecret = Static<typeof PullSecret>;
export const PullSecretCollection = Collection(PullSecret);
export type PullSecretCollection = Static<typeof PullSecretCollection>;

export const Verification = Type.Object({
  verified: Type.Boolean({ description: 'Whether the registry accepted the login and password' }),
  outcome: Type.Enum(['accepted', 'refused', 'not_asked', 'no_registry', 'unreachable', 'not_allowed']),
  message: Type.String({ description: 'What happened, in a sentence' }),
});
export type Verification = Static<typeof Verification>;

export const DockerConfigJson = Type.Object({
  auths: Type.Record(
    Type.String(),
    Type.Object({ username: Type.String(), password: Type.String(), auth: Type.String() }),
  ),
});
export type DockerConfigJson = Static<typeof DockerConfigJson>;
