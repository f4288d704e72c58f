import { Type } from 'typebox';
import type { Static } from 'typebox';
import { IntegerId } from '../../http/shapes.ts';

export const ClientPath = Type.Object({ client_id: IntegerId });

/** The format has no room for line breaks, quotes or comments. */
const EmailAddress = Type.String({ format: 'email', maxLength: 254 });

export const Client = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  emails: Type.Array(Type.String(), { description: 'Where notifications go' }),
  created_at: Type.String(),
});
export type Client = Static<typeof Client>;

export const UpdateClient = Type.Object(
  { emails: Type.Optional(Type.Array(EmailAddress, { maxItems: 20 })) },
  { additionalProperties: false },
);
export type UpdateClient = Static<typeof UpdateClient>;
