import { queryOptions } from '@tanstack/react-query';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import type { components } from '../api/openapi.d.ts';
import { useReadOnlyReason, useSession } from '../api/session.ts';

export type Project = components['schemas']['Project'];

/** First part of the keys of all queries of projects: events of this kind refresh them, and the switcher. */
export const KIND = 'projects';

/** The projects that the session may see. */
export const allProjectsQuery = queryOptions({
  queryKey: [KIND, 'all'],
  queryFn: () => allRows((query) => unwrap(api.GET('/cloud/v1/projects', { params: { query } }))),
});

export const projectQuery = (id: string) =>
  queryOptions({
    queryKey: [KIND, 'one', id],
    queryFn: () => unwrap(api.GET('/cloud/v1/projects/{project_id}', { params: { path: { project_id: Number(id) } } })),
  });

/** Why a project cannot be deleted; null when it can, once it is empty. */
export function undeletableReason({ is_default }: Project): string | null {
  return is_default ? 'The default project cannot be deleted' : null;
}

/** Why the session may not manage projects; null when it may. */
export function useNotAdminReason(): string | null {
  const readOnly = useReadOnlyReason();
  const { role } = useSession();
  return readOnly ?? (role === 'admin' ? null : 'The token of this session does not have the role admin');
}
