import { queryOptions } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import type { components, paths } from '../api/openapi.d.ts';
import { ApiError } from '../api/errors.ts';

export type AuditEntry = components['schemas']['AuditEntry'];
export type AuditChange = components['schemas']['AuditChange'];
export type AuditFilter = NonNullable<paths['/cloudyard/v1/audit']['get']['parameters']['query']>;

/** Entries on a page. */
const LIMIT = 50;

/** A page of the audit log, newest first. The server filters: the log is never cut. */
export const auditQuery = (filter: AuditFilter) =>
  queryOptions({
    queryKey: ['audit', filter],
    queryFn: () => unwrap(api.GET('/cloudyard/v1/audit', { params: { query: { ...filter, limit: LIMIT } } })),
  });

/** One entry: the first one before the next ID. */
export const auditEntryQuery = (id: number) =>
  queryOptions({
    queryKey: ['audit', id],
    queryFn: async () => {
      const params = { query: { before: id + 1, limit: 1 } };
      const [entry] = (await unwrap(api.GET('/cloudyard/v1/audit', { params }))).results;
      if (entry?.id !== id) throw new ApiError(404, { message: `audit entry ${id} not found` });
      return entry;
    },
    // Entries never change.
    staleTime: Infinity,
  });

/** URL of the export of every entry that matches. */
export function exportUrl(filter: AuditFilter, format: 'csv' | 'jsonl'): string {
  const entries = Object.entries({ ...filter, before: undefined, format }).filter(([, value]) => value !== undefined);
  return `/cloudyard/v1/audit?${new URLSearchParams(entries.map(([name, value]) => [name, String(value)]))}`;
}
