/** Requests and responses of pull secrets. */
import { type Static, Type } from 'typebox';
import { pattern } from '../../http/patterns.ts';
import { Body, Collection, Component, DateTime, Described, noControlCharacters, Nullable } from '../../http/shapes.ts';

const nameRule = '1 to 250 letters, digits, `.`, `_` and `-`';

/** `.` and `..` would be removed from paths. */
export const PullSecretName = Type.String({
  maxLength: 250,
  pattern: pattern('^(\\.{3,}|\\.*[A-Za-z0-9_-][A-Za-z0-9._-]*)$', `${nameRule}, but not \`.\` or \`..\``),
  description: `${nameRule}; unique in the project and region`,
});
const Login = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: noControlCharacters,
  description: 'User name at the registry, without control characters',
});
const Password = Type.String({
  minLength: 1,
  maxLength: 5000,
  format: 'password',
  writeOnly: true,
  description: 'Password or access token at the registry, without control characters',
});
const Registry = Type.String({
  minLength: 1,
  maxLength: 400,
  pattern: noControlCharacters,
  description:
    'Registry as for `docker login`: `registry.example.com:5000`, `https://ghcr.io`, `docker.io`. Other text is accepted ' +
    'and cannot be used (`verify` says why), except credentials in a URL.',
});

export const CreatePullSecret = Body(
  'CreatePullSecret',
  [{ name: 'my-registry', registry: 'registry.example.com', login: 'ci', password: 'my-password' }],
  { name: PullSecretName, registry: Registry, login: Login, password: Password },
);
export type CreatePullSecret = Static<typeof CreatePullSecret>;

export const UpdatePullSecret = Body(
  'UpdatePullSecret',
  [{ password: 'my-new-password' }],
  {
    registry: Type.Optional(Nullable(Registry)),
    login: Type.Optional(Nullable(Login)),
    password: Type.Optional(Nullable(Password)),
  },
  'Fields that are omitted or null are unchanged',
);
export type UpdatePullSecret = Static<typeof UpdatePullSecret>;

/** Invariant: does not contain the password. */
export const PullSecret = Component('PullSecret', {
  name: Type.String({ description: 'Name of the pull secret' }),
  registry: Type.String({ description: 'Registry as in the request' }),
  login: Type.String({ description: 'User name at the registry' }),
  updated_at: Described(DateTime, 'When the pull secret last changed'),
});
export type PullSecret = Static<typeof PullSecret>;
export const PullSecretCollection = Collection(PullSecret);

export const Verification = Component('PullSecretVerification', {
  verified: Type.Boolean({ description: 'Whether the registry accepted the login and password' }),
  outcome: Type.Enum(['accepted', 'refused', 'not_asked', 'no_registry', 'unreachable', 'not_allowed', 'unusable'], {
    description:
      '`accepted`: the login is valid; `refused`: it is not; `not_asked`: the registry needs no login; `no_registry`: ' +
      'the host is not a registry; `unreachable`: it does not respond; `not_allowed`: this server must not connect to ' +
      'it, or only without encryption; `unusable`: no client can use this registry or login',
  }),
  message: Type.String({ description: 'The result as text' }),
});
export type Verification = Static<typeof Verification>;

const DockerConfigAuth = Component('DockerConfigAuth', {
  username: Type.String({ description: 'User name at the registry' }),
  password: Type.String({ description: 'Password at the registry' }),
  auth: Type.String({ description: 'Base64 of `username:password`' }),
});
export const DockerConfigJson = Component('DockerConfigJson', {
  auths: Type.Record(Type.String(), DockerConfigAuth, { description: 'Logins by registry; one entry' }),
});
export type DockerConfigJson = Static<typeof DockerConfigJson>;
