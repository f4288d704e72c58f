import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useRef } from 'react';
import { ApiError, messageOf } from '../api/errors.ts';
import { useReachability } from '../api/reachability.ts';

export function Loading() {
  return (
    <div className="state" role="status">
      <span className="spinner" aria-hidden="true" />
      <span className="visually-hidden">Loading</span>
    </div>
  );
}

/** Grey bars in the form of `rows` lines, while data loads. */
export function Skeleton({ rows = 4 }: { rows?: number | undefined }) {
  return (
    <div className="stack card-body" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <span key={row} className="skeleton" />
      ))}
    </div>
  );
}

export function EmptyState({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="state">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}

interface ErrorStateProps {
  readonly error: unknown;
  readonly retry?: () => void;
  /** Whether an attempt is running. */
  readonly isRetrying?: boolean;
}

/** A read that failed: the server's message, the ID of the request, and a button that tries again. */
export function ErrorState({ error, retry, isRetrying }: ErrorStateProps) {
  const { status = 0, requestId = null } = error instanceof ApiError ? error : {};
  // Another attempt would not help.
  if (status === 403) return <EmptyState title="No access">{messageOf(error)}</EmptyState>;
  return (
    <div className="state" role="alert">
      <h2>{status === 404 ? 'Not found' : 'This could not be loaded'}</h2>
      <p>{messageOf(error)}</p>
      {requestId && <p className="mono">Request {requestId}</p>}
      {retry && (
        <button type="button" className="button" aria-disabled={isRetrying} onClick={isRetrying ? undefined : retry}>
          {isRetrying && <span className="spinner" aria-hidden="true" />} Try again
        </button>
      )}
    </div>
  );
}

type Attempts = Pick<UseQueryResult, 'data' | 'error' | 'errorUpdateCount'>;

/** Why a query has no data yet, also during further attempts: the query forgets its error when one begins. */
export function useLoadError({ data, error, errorUpdateCount }: Attempts): Error | null {
  const last = useRef(error);
  if (error || errorUpdateCount === 0) last.current = error;
  return data === undefined ? last.current : null;
}

interface NotLoadedProps {
  readonly query: Attempts & Pick<UseQueryResult, 'isFetching' | 'refetch'>;
  readonly rows?: number;
}

/** In place of data that a query has not read: grey bars, or why it failed. Data that was read stays when a later read fails. */
export function NotLoaded({ query, rows }: NotLoadedProps) {
  const error = useLoadError(query);
  if (error) return <ErrorState error={error} retry={() => void query.refetch()} isRetrying={query.isFetching} />;
  return <Skeleton rows={rows} />;
}

/** Whether a read failed because the resource does not exist any more, or may not be seen any more. */
export function isGone(error: unknown): boolean {
  return error instanceof ApiError && [403, 404].includes(error.status);
}

/** Above the page while requests do not reach the server: its data may be old. */
export function ConnectionNotice() {
  const isReachable = useReachability();
  return (
    <div role="status">
      {!isReachable && (
        <p className="notice warn connection">
          The server is not available. The page may be out of date; it is updated when the server responds.
        </p>
      )}
    </div>
  );
}
