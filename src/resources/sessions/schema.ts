/** Requests and responses of sessions. */
import { type Static, Type } from 'typebox';
import { roles } from '../../authz/actor.ts';
import { Body, Component, DateTime, Described, Nullable } from '../../http/shapes.ts';

export const CreateSession = Body('CreateSession', [{ token: '0123456789ab$secret' }], {
  token: Type.String({
    minLength: 1,
    maxLength: 1000,
    format: 'password',
    writeOnly: true,
    description: 'An API token; the prefix `apikey ` is accepted',
  }),
});

export const Session = Component('Session', {
  token_id: Type.Integer({ description: 'ID of the token' }),
  token_name: Type.String({ description: 'Name of the token; may be empty' }),
  client_id: Type.Integer({ description: 'ID of the client' }),
  client_name: Type.String({ description: 'Name of the client' }),
  role: Type.Enum([...roles], { description: 'Role of the token' }),
  is_operator: Type.Boolean({ description: 'Whether the client operates this Cloudyard' }),
  project_ids: Nullable(
    Type.Array(Type.Integer(), { description: 'Projects that the token is limited to; null: all of the client' }),
  ),
  expires_at: Described(DateTime, 'When the session ends even if it is used'),
  idle_timeout_seconds: Type.Integer({ description: 'Seconds without a request after which the session ends' }),
  csrf_token: Type.String({ description: 'Send it in the header `X-CSRF-Token` of requests that change something' }),
  is_development: Type.Boolean({ description: 'Whether the server runs in development mode' }),
});
export type Session = Static<typeof Session>;
