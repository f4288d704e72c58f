/** Requests and responses of tokens. */
import { type Static, Type } from 'typebox';
import { roles } from '../../authz/actor.ts';
import {
  Body,
  Collection,
  Component,
  DateTime,
  Described,
  extending,
  Instant,
  IntegerId,
  noControlCharacters,
  Nullable,
  Paging,
} from '../../http/shapes.ts';

const Role = Type.Enum([...roles], {
  title: 'TokenRole',
  description: '`reader` reads, `member` also changes, `admin` also manages projects, tokens and webhooks',
});
const projectsRule = 'Projects that the token is limited to; null: all projects of the client';
const clientRule = 'ID of the client; only the operator may name another client than its own';
const State = Type.Enum(['active', 'expired', 'revoked'], { description: 'Only `active` tokens are accepted' });

export const CreateToken = Body('CreateToken', [{ name: 'ci', role: 'member', expires_at: '2030-01-01T00:00:00Z' }], {
  name: Type.String({
    minLength: 1,
    maxLength: 255,
    pattern: noControlCharacters,
    description: 'Any text without control characters; need not be unique',
  }),
  role: Role,
  project_ids: Type.Optional(
    Described(Nullable(Type.Array(IntegerId, { maxItems: 1000, uniqueItems: true })), projectsRule),
  ),
  expires_at: Type.Optional(
    Described(Nullable(Instant), 'When the token expires, ISO 8601, UTC if it has no offset; null: never'),
  ),
  client_id: Type.Optional(Described(IntegerId, clientRule)),
});
export type CreateToken = Static<typeof CreateToken>;

export const ListTokens = Type.Object({
  client_id: Type.Optional(Described(IntegerId, clientRule)),
  state: Type.Optional(Described(State, 'Only tokens in this state')),
  ...Paging(1000),
});
export type ListTokens = Static<typeof ListTokens>;

const fields = {
  id: Type.Integer({ description: 'ID of the token' }),
  key_id: Type.String({ description: 'The part of the token before the `$`' }),
  client_id: Type.Integer({ description: 'ID of the client' }),
  name: Type.String({ description: 'Name of the token; may be empty' }),
  role: Role,
  project_ids: Described(Nullable(Type.Array(Type.Integer())), projectsRule),
  state: State,
  created_at: Described(DateTime, 'When the token was created'),
  expires_at: Described(Nullable(DateTime), 'When the token expires; null: never'),
  revoked_at: Described(Nullable(DateTime), 'When the token was revoked'),
  last_used_at: Described(Nullable(DateTime), 'When a request last had the token, up to a minute late; null: never'),
};

/** Invariant: does not contain the secret. */
export const Token = Component('Token', fields);
export type Token = Static<typeof Token>;

export const NewToken = Type.Object(
  { ...fields, token: Type.String({ description: 'The token `<id>$<secret>`; only this response contains it' }) },
  { title: 'NewToken', ...extending(Token) },
);
export type NewToken = Static<typeof NewToken>;

export const TokenCollection = Collection(Token);
