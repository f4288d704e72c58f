import { useQuery } from '@tanstack/react-query';
import { Outlet } from '@tanstack/react-router';
import { lazy, type SubmitEvent, Suspense, useEffect, useRef, useState } from 'react';
import { sessionQuery, signIn } from '../api/session.ts';
import { messageOf } from '../api/errors.ts';
import { queryClient } from '../api/query-client.ts';
import { loadChunk } from './chunks.ts';
import { useModal } from './modal.ts';
import { ErrorState, Loading, useLoadError } from './states.tsx';
import { useTitle } from './title.ts';

const SingleSignOn = lazy(() => loadChunk(() => import('./single-sign-on.tsx')));

/** Shows the pages to a signed-in user. A session that expires is renewed in a dialog: the page behind it keeps its state. */
export function SessionGate() {
  const query = useQuery(sessionQuery);
  const { data: session, refetch, isFetching } = query;
  const loadError = useLoadError(query);
  const error = loadError ?? query.error;
  const hadSession = useRef(false);
  if (session) hadSession.current = true;
  const wasSignedIn = hadSession.current;
  if (query.data === undefined && !loadError) return <Loading />;
  if (error && !wasSignedIn) return <ErrorState error={error} retry={() => void refetch()} isRetrying={isFetching} />;
  if (!session && !wasSignedIn) {
    return (
      <main className="sign-in">
        <SignInForm />
      </main>
    );
  }
  return (
    <>
      <Outlet />
      {!session && <ExpiredDialog />}
    </>
  );
}

function ExpiredDialog() {
  const dialog = useModal({ isTopmost: true });
  useEffect(() => {
    // Single sign-on takes place in another tab.
    const check = () => void queryClient.invalidateQueries({ queryKey: sessionQuery.queryKey });
    window.addEventListener('focus', check);
    return () => window.removeEventListener('focus', check);
  }, []);
  return (
    <dialog ref={dialog} closedby="none" aria-labelledby="sign-in-title" onCancel={(event) => event.preventDefault()}>
      <div className="dialog-body">
        <SignInForm reason="The session has ended. Sign in to continue; this page and its text are kept." />
      </div>
    </dialog>
  );
}

function SignInForm({ reason }: { reason?: string }) {
  const [token, setToken] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useTitle('Sign in');
  useEffect(() => input.current?.focus(), []);
  async function submit(event: SubmitEvent<HTMLFormElement>): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await signIn(token.trim().replace(/^apikey\s+/i, ''));
    } catch (failure) {
      setError(messageOf(failure));
      setBusy(false);
      input.current?.focus();
      input.current?.select();
    }
  }
  return (
    <form className="form" onSubmit={(event) => void submit(event)}>
      <div className="brand">
        <img src="/console/favicon.svg" alt="" />
        Cloudyard
      </div>
      <h1 id="sign-in-title">Sign in</h1>
      {reason && <p className="notice">{reason}</p>}
      <div className="field">
        <label htmlFor="token">API token</label>
        <input
          ref={input}
          id="token"
          type="password"
          autoComplete="current-password"
          spellCheck={false}
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
          aria-invalid={error !== null}
          aria-describedby="token-help token-error"
        />
        <p id="token-help" className="help">
          <code>id$secret</code>, as the first start of Cloudyard and <code>cloudyard token create</code> print it. It
          is kept in a cookie that scripts cannot read.
        </p>
        <p id="token-error" className="error" role="alert">
          {error}
        </p>
      </div>
      <button type="submit" className="button primary" disabled={isBusy}>
        {isBusy && <span className="spinner" aria-hidden="true" />} Sign in
      </button>
      <Suspense>
        <SingleSignOn isRenewal={reason !== undefined} />
      </Suspense>
    </form>
  );
}
