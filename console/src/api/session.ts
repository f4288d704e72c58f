import { type Query, queryOptions, useQuery } from '@tanstack/react-query';
import { request, sessionState } from './client.ts';
import { ApiError } from './errors.ts';
import type { components } from './openapi.d.ts';
import { queryClient } from './query-client.ts';

type Session = components['schemas']['Session'];

const PATH = '/cloudyard/v1/session';

/** Tabs share the cookie, and each needs the CSRF token of its session: they read it again after a sign-in or sign-out. */
const otherTabs = new BroadcastChannel('cloudyard-session');
otherTabs.addEventListener('message', () => void queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey }));

function notifyOtherTabs(): void {
  // The rule is about windows: a BroadcastChannel takes no origin.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  otherTabs.postMessage(null);
}

/** The session of this browser; null when signed out. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: async (): Promise<Session | null> => {
    try {
      return keep(await request<Session>('GET', PATH));
    } catch (error) {
      if (hasNoSession(error)) return keep(null);
      throw error;
    }
  },
  staleTime: 60_000,
});

/** Signs in with a token `<id>$<secret>`. The server keeps it in an HttpOnly cookie, which no script can read. */
export async function signIn(token: string): Promise<void> {
  await request('POST', PATH, { token });
  const session = keep(await request<Session>('GET', PATH).catch(explainLostCookie));
  queryClient.setQueryData(sessionQuery.queryKey, session);
  notifyOtherTabs();
  await queryClient.invalidateQueries();
}

/** @throws the failure; that of a session which the browser did not keep says what to do */
function explainLostCookie(error: unknown): never {
  if (!hasNoSession(error)) throw error;
  throw new Error('the browser did not keep the cookie of the session; allow cookies for this site');
}

function hasNoSession(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}

export async function signOut(): Promise<void> {
  await request('DELETE', PATH).catch((error: unknown) => {
    if (!hasNoSession(error)) throw error;
  });
  notifyOtherTabs();
  // A new document: nothing that this session read stays in memory.
  location.assign('/console/');
}

/** The session of the signed-in user. Only for components inside the frame, which a session always renders. */
export function useSession(): Session {
  const { data } = useQuery(sessionQuery);
  return data ?? lastSession!;
}

/** Whether the session manages all clients. A token that is limited to projects calls no operation of the operator. */
export function useManagesClients(): boolean {
  const { is_operator, role, project_ids } = useSession();
  return is_operator && role === 'admin' && project_ids === null;
}

/** Whether the session may read what all projects of the client share: its webhooks. */
export function useReadsWebhooks(): boolean {
  const { role, project_ids } = useSession();
  return role !== 'reader' && project_ids === null;
}

/** Why this session may not change anything; null when it may. */
export function useReadOnlyReason(): string | null {
  const { role } = useSession();
  return role === 'reader' ? 'The token of this session is read-only' : null;
}

/** Why the resource cannot be changed now; null when it can. `kind`: for example `load balancer`. */
export function useLockReason({ task_id }: { readonly task_id: string | null }, kind: string): string | null {
  const readOnly = useReadOnlyReason();
  return readOnly ?? (task_id ? `A task is changing this ${kind}` : null);
}

/** Why this session may not change what all projects of the client share, such as limits; null when it may. */
export function useLimitedReason(): string | null {
  const readOnly = useReadOnlyReason();
  const { project_ids } = useSession();
  return readOnly ?? (project_ids === null ? null : 'The token of this session is limited to projects');
}

/** Why this session may not call the operations of an admin; null when it may. */
export function useNotAdminReason(): string | null {
  const readOnly = useReadOnlyReason();
  const { role } = useSession();
  return readOnly ?? (role === 'admin' ? null : 'The token of this session does not have the role admin');
}

/** The same for what all projects of the client share: webhooks and addresses. */
export function useNotClientAdminReason(): string | null {
  const notAdmin = useNotAdminReason();
  const limited = useLimitedReason();
  return notAdmin ?? limited;
}

/** The same for operations of the operator. */
export function useNotOperatorReason(): string | null {
  const notAdmin = useNotClientAdminReason();
  const { is_operator } = useSession();
  return notAdmin ?? (is_operator ? null : 'The client of this session is not the operator');
}

/** Kept over the expiry of a session, so that the page behind the sign-in dialog keeps its place. */
let lastSession: Session | null = null;

function keep(session: Session | null): Session | null {
  sessionState.csrfToken = session?.csrf_token ?? null;
  if (session && lastSession) discardOthersData(lastSession, session);
  if (session) lastSession = session;
  return session;
}

/** Another token may have signed in, also in another tab. What one client has read is not shown to the next one. */
function discardOthersData(last: Session, next: Session): void {
  const predicate = ({ queryKey }: Query) => queryKey[0] !== 'session';
  if (next.client_id !== last.client_id) void queryClient.resetQueries({ predicate });
  else if (next.token_id !== last.token_id) void queryClient.invalidateQueries({ predicate });
}

sessionState.reportExpiry = () => queryClient.setQueryData(sessionQuery.queryKey, null);
