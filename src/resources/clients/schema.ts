/** Requests and responses of clients. */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { Described, Timestamp } from '../../http/shapes.ts';

/** The format allows no line breaks, quotes or comments. */
const EmailAddress = Type.String({ format: 'email', maxLength: 254 });

export const Client = Type.Object(
  {
    id: Type.Integer({ description: 'ID of the client' }),
    name: Type.String({ description: 'Name of the client' }),
    emails: Type.Array(Type.String(), { description: 'Addresses that receive notifications' }),
    created_at: Described(Timestamp, 'When the client was created'),
  },
  { title: 'Client' },
);
export type Client = Static<typeof Client>;

export const UpdateClient = Type.Object(
  {
    emails: Type.Optional(
      Type.Array(EmailAddress, { maxItems: 20, description: 'Addresses that receive notifications; at most 20' }),
    ),
  },
  { title: 'UpdateClient', additionalProperties: false, examples: [{ emails: ['alerts@example.com'] }] },
);
export type UpdateClient = Static<typeof UpdateClient>;
