/** Requests and responses of the audit log. */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import { IntegerId, Nullable } from '../../http/shapes.ts';

const Moment = Type.String({ format: 'date-time' });

export const ListAudit = Type.Object({
  operation: Type.Optional(Type.String({ maxLength: 100, description: 'An operationId of the OpenAPI document' })),
  client_id: Type.Optional(IntegerId),
  project_id: Type.Optional(IntegerId),
  region_id: Type.Optional(IntegerId),
  token_id: Type.Optional(IntegerId),
  request_id: Type.Optional(Type.String({ maxLength: 100 })),
  table: Type.Optional(Type.String({ maxLength: 100, description: 'The kind of thing that changed: `file_shares`' })),
  row_id: Type.Optional(Type.String({ maxLength: 100, description: 'The id of what changed' })),
  from_timestamp: Type.Optional(Moment),
  to_timestamp: Type.Optional(Moment),
  limit: Type.Optional(Type.Integer({ exclusiveMinimum: 0, maximum: 1000, default: 100 })),
  before: Type.Optional(
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: '`next` of the page before' }),
  ),
});
export type ListAudit = Static<typeof ListAudit>;

const Row = Nullable(Type.Record(Type.String(), Type.Unknown()));

const AuditEntry = Type.Object({
  id: Type.Integer(),
  at: Type.String({ format: 'date-time' }),
  operation: Type.String(),
  token: Nullable(
    Type.Object({ id: Type.Integer(), name: Nullable(Type.String()) }, { description: 'null: a command on a machine' }),
  ),
  client_id: Nullable(Type.Integer()),
  project_id: Nullable(Type.Integer()),
  region_id: Nullable(Type.Integer()),
  request_id: Nullable(Type.String()),
  origin: Type.Record(Type.String(), Type.String(), { description: 'From where, as far as it is known' }),
  changes: Type.Array(
    Type.Object({
      table: Type.String(),
      id: Type.Unknown(),
      before: Row,
      after: Row,
    }),
    { description: 'Of a row that changed, what changed; secrets are told to have changed, and not shown' },
  ),
});
export type AuditEntry = Static<typeof AuditEntry>;

export const AuditPage = Type.Object({
  results: Type.Array(AuditEntry),
  next: Nullable(Type.Integer({ description: '`before` of the next page; null: this is the last' })),
});
