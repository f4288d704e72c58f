import { queryOptions, useQuery } from '@tanstack/react-query';
import { Navigate, useParams } from '@tanstack/react-router';
import { allRows } from '../api/all-rows.ts';
import { api, unwrap } from '../api/client.ts';
import { SignOutButton } from './sign-out.tsx';
import { ErrorState, Loading, useLoadError } from './states.tsx';
import { useTitle } from './title.ts';
import { Toasts } from './toasts.tsx';

/** The project and region of the URL. */
export interface Scope {
  readonly project: number;
  readonly region: number;
  /** Path of a page in this scope: `path('file-shares', id)`. For `to` of links. */
  readonly path: (...segments: readonly (string | number)[]) => string;
}

export function useScope(): Scope {
  const { project, region } = useParams({ strict: false }) as { project: string; region: string };
  return scopeOf(project, region);
}

function scopeOf(project: string | number, region: string | number): Scope {
  return {
    project: Number(project),
    region: Number(region),
    path: (...segments) =>
      `/p/${project}/r/${region}/${segments.map((segment) => encodeURIComponent(segment)).join('/')}`,
  };
}

/** `path` parameters of the operations of a project and region. */
export function scopeParams({ project, region }: Scope): { project_id: number; region_id: number } {
  return { project_id: project, region_id: region };
}

/** The projects that the session may see. */
export const projectsQuery = queryOptions({
  queryKey: ['projects', 'all'],
  queryFn: () => allRows((query) => unwrap(api.GET('/cloud/v1/projects', { params: { query } }))),
});

export const projectQuery = (id: number) =>
  queryOptions({
    queryKey: ['projects', 'one', id],
    queryFn: () => unwrap(api.GET('/cloud/v1/projects/{project_id}', { params: { path: { project_id: id } } })),
  });

/** The project of the URL: from the list, or by its ID if the list is cut. */
export function useProject() {
  const { project: id } = useScope();
  const projects = useQuery(projectsQuery).data?.results;
  const listed = projects?.find((each) => each.id === id);
  const isUnlisted = projects !== undefined && listed === undefined && Number.isSafeInteger(id);
  const { data, error } = useQuery({ ...projectQuery(id), enabled: isUnlisted });
  return { project: listed ?? data, error };
}

export const regionsQuery = queryOptions({
  queryKey: ['regions', 'switcher'],
  queryFn: () => unwrap(api.GET('/cloud/v1/regions', { params: { query: { limit: 1000 } } })),
});

/** The page that `/console` opens. */
export const HOME = 'overview';

const LAST = 'cloudyard-scope';

/** Remembers the scope, so that `/console` opens where the user was. */
export function rememberScope({ project, region }: Scope): void {
  localStorage.setItem(LAST, JSON.stringify({ project, region }));
}

/** Opens the first page of the last project and region, or of the first ones. */
export function EnterScope() {
  const params = useParams({ strict: false }) as { project?: string; region?: string };
  const queries = [useQuery(projectsQuery), useQuery(regionsQuery)] as const;
  const [projects, regions] = [queries[0].data?.results, queries[1].data?.results];
  const missing = projects ? queries[1] : queries[0];
  const error = useLoadError(missing);
  if (error) return <ErrorState error={error} retry={() => void missing.refetch()} isRetrying={missing.isFetching} />;
  if (!projects || !regions) return <Loading />;
  const last = JSON.parse(localStorage.getItem(LAST) ?? '{}') as { project?: number; region?: number };
  const wanted = { project: Number(params.project ?? last.project), region: Number(params.region ?? last.region) };
  const project =
    projects.find(({ id }) => id === wanted.project) ?? projects.find((each) => each.is_default) ?? projects[0];
  // Lists are newest first.
  const region = regions.find(({ id }) => id === wanted.region) ?? regions.toSorted((a, b) => a.id - b.id)[0];
  if (!project || !region) return <NothingToOpen />;
  return <Navigate to={scopeOf(project.id, region.id).path(HOME)} replace />;
}

/** Shown when all projects of the token were deleted. Has its own sign-out, because the frame is not rendered. */
function NothingToOpen() {
  useTitle('No project');
  return (
    <main className="main">
      <div className="state">
        <h1>No project</h1>
        <p>This token has access to no project.</p>
        <SignOutButton className="button" />
      </div>
      <Toasts />
    </main>
  );
}

/** The client that owns the project of the URL; undefined while it loads. */
export function useClientId(): number | undefined {
  return useProject().project?.client_id;
}
