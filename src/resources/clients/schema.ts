/** Requests and responses of clients. */
import { type Static, Type } from 'typebox';
import { Body, Collection, Component, DateTime, Described, noControlCharacters } from '../../http/shapes.ts';

/** The format allows no line breaks, quotes or comments. */
const EmailAddress = Type.String({ format: 'email', maxLength: 254 });

const Name = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: noControlCharacters,
  description: 'Name of the client, unique, without control characters',
});

export const CreateClient = Body('CreateClient', [{ name: 'Example' }], { name: Name });
export type CreateClient = Static<typeof CreateClient>;

export const Client = Component('Client', {
  id: Type.Integer({ description: 'ID of the client' }),
  name: Type.String({ description: 'Name of the client' }),
  emails: Type.Array(Type.String(), { description: 'Addresses that receive notifications' }),
  created_at: Described(DateTime, 'When the client was created'),
});
export type Client = Static<typeof Client>;
export const ClientCollection = Collection(Client);

export const UpdateClient = Body('UpdateClient', [{ emails: ['alerts@example.com'] }], {
  name: Type.Optional(Described(Name, 'New name, unique, without control characters; only the operator may set it')),
  emails: Type.Optional(
    Type.Array(EmailAddress, { maxItems: 20, description: 'Addresses that receive notifications; at most 20' }),
  ),
});
export type UpdateClient = Static<typeof UpdateClient>;
