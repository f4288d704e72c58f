/** The operations of tokens. */
import { tokenAdmin } from '../../authz/access.ts';
import { operationsOf } from '../../http/operations.ts';
import { NumberOf } from '../../http/path-parameters.ts';
import type { TokenManagement } from './management/service.ts';
import { CreateToken, ListTokens, NewToken, Token, TokenCollection } from './schema.ts';

const operation = operationsOf(
  {
    name: 'Tokens',
    description:
      'A token authenticates the requests of a client. The caller manages the tokens of its client, the operator those of ' +
      'all clients; a token that is limited to projects manages only tokens limited to the same projects or fewer.',
  },
  { token_id: NumberOf('the token') },
);
const all = '/cloudyard/v1/tokens';
const one = `${all}/:token_id`;

export const tokenOperations = ({ tokenManagement: tokens }: { tokenManagement: TokenManagement }) => [
  operation('POST', all, {
    id: 'createToken',
    summary: 'Create a token',
    description: 'Only this response contains the secret. The token has no more rights than that of the caller.',
    access: tokenAdmin,
    body: CreateToken,
    bodyErrors: tokens.bodyErrors,
    response: NewToken,
    status: 201,
    handle: ({ by, body }) => tokens.create(by, body),
  }),
  operation('GET', all, {
    id: 'listTokens',
    summary: 'List tokens',
    description: 'The newest token comes first.',
    access: tokenAdmin,
    query: ListTokens,
    response: TokenCollection,
    handle: ({ by, query }) => tokens.list(by, query),
  }),
  operation('GET', one, {
    id: 'getToken',
    summary: 'Get a token',
    access: tokenAdmin,
    response: Token,
    handle: ({ by, params }) => tokens.get(by, params.token_id),
  }),
  operation('DELETE', one, {
    id: 'revokeToken',
    summary: 'Revoke a token',
    description: 'Every server refuses the token, and ends its sessions, within a second. Lists still show it.',
    access: tokenAdmin,
    handle: ({ by, params }) => tokens.revoke(by, params.token_id),
  }),
];
