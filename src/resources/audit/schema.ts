/** Requests and responses of the audit log. */
import { type Static, Type } from 'typebox';
import { Component, Described, Instant, IntegerId, Nullable, OrNull } from '../../http/shapes.ts';

/** In addition to JSON (export.ts). */
export const exportFormats = ['csv', 'jsonl'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export const ListAudit = Type.Object({
  operation: Type.Optional(Type.String({ maxLength: 100, description: 'Only changes by this operationId' })),
  client_id: Type.Optional(Described(IntegerId, 'Only changes of this client')),
  project_id: Type.Optional(Described(IntegerId, 'Only changes in this project')),
  region_id: Type.Optional(Described(IntegerId, 'Only changes in this region')),
  token_id: Type.Optional(Described(IntegerId, 'Only changes by this token')),
  request_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only changes by this request' })),
  table: Type.Optional(
    Type.String({ maxLength: 100, description: 'Only changes of this table, such as `file_shares`' }),
  ),
  row_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only changes of the resource with this ID' })),
  row_name: Type.Optional(
    Type.String({
      maxLength: 255,
      description:
        'Only changes of resources that have or had this name, for resources whose responses have no ID; needs `table`',
    }),
  ),
  from_timestamp: Type.Optional(Described(Instant, 'Only changes at or after this date')),
  to_timestamp: Type.Optional(Described(Instant, 'Only changes at or before this date')),
  limit: Type.Optional(
    Type.Integer({
      exclusiveMinimum: 0,
      maximum: 1000,
      description: 'Maximum number of entries; 100 by default, and all of them as `csv` or `jsonl`',
    }),
  ),
  format: Type.Optional(
    Type.Enum(['json', ...exportFormats], {
      description: '`json` is a page; `csv` and `jsonl` (a JSON object in each line) are streams. Default: by `Accept`',
    }),
  ),
  before: Type.Optional(
    Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: '`next` of the previous page' }),
  ),
});
export type ListAudit = Static<typeof ListAudit>;

const Row = (when: string) =>
  Described(
    Nullable(Type.Record(Type.String(), Type.Unknown())),
    `The changed columns ${when} the change, or null; secrets are redacted`,
  );

const AuditToken = Component('AuditToken', {
  id: Type.Integer({ description: 'ID of the token' }),
  name: OrNull.text('Name of the token'),
});

const AuditChange = Component('AuditChange', {
  table: Type.String({ description: 'Table of the row, such as `file_shares`' }),
  id: Type.Unknown({ description: 'ID of the row; null: it has none, and all its columns are listed' }),
  before: Row('before'),
  after: Row('after'),
});

const AuditEntry = Component('AuditEntry', {
  id: Type.Integer({ description: 'ID of the entry' }),
  at: Type.String({ format: 'date-time', description: 'When the change was made' }),
  operation: Type.String({ description: 'operationId of the request, or name of the command' }),
  token: Described(Nullable(AuditToken), 'Token of the request; null for a command on the host'),
  client_id: OrNull.integer('ID of the client'),
  project_id: OrNull.integer('ID of the project'),
  region_id: OrNull.integer('ID of the region'),
  request_id: OrNull.text('ID of the request'),
  origin: Type.Record(Type.String(), Type.String(), {
    description: 'Address, method, path and user agent, where known',
  }),
  changes: Type.Array(AuditChange, { description: 'The rows that changed' }),
});
export type AuditEntry = Static<typeof AuditEntry>;

export const AuditPage = Component('AuditPage', {
  results: Type.Array(AuditEntry, { description: 'The entries of this page' }),
  next: OrNull.integer('`before` of the next page; null on the last page'),
});
