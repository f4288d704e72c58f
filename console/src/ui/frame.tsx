import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useLocation, useNavigate, useRouterState } from '@tanstack/react-router';
import { lazy, type MouseEvent, type ReactNode, Suspense, useEffect, useRef, useState } from 'react';
import { useLiveQueries } from '../api/events.ts';
import { sessionQuery } from '../api/session.ts';
import { AccountMenu } from './account-menu.tsx';
import { loadChunk } from './chunks.ts';
import { Icon } from './icons.tsx';
import { useShortcuts } from './keyboard.tsx';
import { SECTIONS } from './page.ts';
import { Palette } from './palette.tsx';
import { RouteAnnouncer } from './route-announcer.tsx';
import { HOME, projectsQuery, regionsQuery, rememberScope, useProject, useScope } from './scope.tsx';
import { RunningTasks } from './running-tasks.tsx';
import { ConnectionNotice, EmptyState, isGone } from './states.tsx';
import { Toasts } from './toasts.tsx';
import { useVisiblePages } from './visible-pages.ts';

const KeyboardHelp = lazy(() => loadChunk(() => import('./keyboard-help.tsx')));

/** Navigation, project and region, search, running tasks and account around every page. */
export function Frame() {
  const scope = useScope();
  const { pathname } = useLocation();
  const [overlay, setOverlay] = useState<'palette' | 'help' | null>(null);
  const isSignedIn = Boolean(useQuery(sessionQuery).data);
  useLiveQueries(String(scope.project));
  useShortcuts({
    // Not above the sign-in dialog of a session that has ended.
    openPalette: () => isSignedIn && setOverlay('palette'),
    openHelp: () => setOverlay('help'),
  });
  useEffect(() => rememberScope(scope), [scope.project, scope.region]);
  useEffect(() => {
    for (const popover of document.querySelectorAll<HTMLElement>(':popover-open')) popover.hidePopover();
  }, [pathname]);
  return (
    <div className="frame">
      <a className="skip-link" href="#main">
        Skip to the content
      </a>
      <Navigation />
      <header className="top">
        <button
          type="button"
          className="button quiet icon menu-button"
          aria-label="Navigation"
          popoverTarget="navigation"
        >
          <Icon name="menu" />
        </button>
        <Switchers />
        <span className="top-space" />
        <button type="button" className="button search-button" onClick={() => setOverlay('palette')}>
          <Icon name="search" /> <span className="wide">Go to</span> <kbd className="wide">{shortcutText}</kbd>
          <span className="visually-hidden">Open the palette</span>
        </button>
        <RunningTasks />
        <AccountMenu openHelp={() => setOverlay('help')} />
      </header>
      <Main />
      {overlay === 'palette' && <Palette close={() => setOverlay(null)} />}
      <Suspense fallback={null}>{overlay === 'help' && <KeyboardHelp close={() => setOverlay(null)} />}</Suspense>
      <Toasts />
      <RouteAnnouncer />
    </div>
  );
}

const shortcutText = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘K' : 'Ctrl K';

/** The content. A navigation to another page moves the focus here (route-announcer.tsx). */
function Main() {
  const isNavigating = useRouterState({ select: (state) => state.isLoading });
  return (
    <main id="main" className="main" tabIndex={-1}>
      {isNavigating && <div className="progress-line" aria-hidden="true" />}
      <ConnectionNotice />
      <KnownScope>
        <Outlet />
      </KnownScope>
    </main>
  );
}

/** Says so if the project or the region of the URL does not exist, or if the token has no access to the project. */
function KnownScope({ children }: { children: ReactNode }) {
  const { project: id, region } = useScope();
  const { project, error } = useProject();
  const regions = useQuery(regionsQuery).data?.results;
  const isUnknown = !Number.isSafeInteger(id) || isGone(error);
  if (!project && isUnknown) {
    return (
      <EmptyState title="Project not found" action={<Link to="/">Go to your first project</Link>}>
        The project of this address does not exist, or this token has no access to it.
      </EmptyState>
    );
  }
  if (regions?.some(({ id }) => id === region) ?? true) return children;
  return (
    <EmptyState title="Region not found" action={<Link to="/">Go to your first project</Link>}>
      The region of this address does not exist.
    </EmptyState>
  );
}

/** Beside the page; in a narrow window it is a popover. */
function Navigation() {
  const shown = useVisiblePages();
  const scope = useScope();
  const nav = useRef<HTMLElement>(null);
  const { pathname } = useLocation();
  const page = pathname.split('/')[5];
  useEffect(() => {
    // A promise in newer browsers, which React would take for the cleanup of the effect.
    void nav.current?.querySelector('[aria-current=page]')?.scrollIntoView({ block: 'nearest' });
  }, [page]);
  return (
    <nav ref={nav} id="navigation" popover="auto" className="side" aria-label="Main" onClick={hideAfterLink}>
      <Link className="brand" to={scope.path(HOME)}>
        <img src="/console/favicon.svg" alt="" /> Cloudyard
      </Link>
      {SECTIONS.map((section) => {
        const inSection = shown.filter((page) => page.section === section);
        if (inSection.length === 0) return null;
        return (
          <section key={section} aria-label={section}>
            <h2>{section}</h2>
            <ul>
              {inSection.map((page) => (
                <li key={page.path}>
                  <Link to={scope.path(page.path)} activeOptions={{ exact: false, includeSearch: false }}>
                    {page.title}
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </nav>
  );
}

/** Also after the link of the page that is open. */
function hideAfterLink({ target, currentTarget }: MouseEvent<HTMLElement>): void {
  if ((target as Element).closest('a')) currentTarget.hidePopover();
}

/** Project and region. The new scope opens the same page: a detail page becomes its list, because IDs differ. */
function Switchers() {
  const scope = useScope();
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const projects = useQuery(projectsQuery).data?.results ?? [];
  const regions = useQuery(regionsQuery).data?.results ?? [];
  const page = pathname.split('/')[5] ?? HOME;
  const open = (project: string | number, region: string | number) =>
    void navigate({ to: `/p/${project}/r/${region}/${page}` });
  return (
    <div className="switchers">
      <select aria-label="Project" value={scope.project} onChange={(event) => open(event.target.value, scope.region)}>
        <Missing id={scope.project} known={projects} />
        {projects.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <select aria-label="Region" value={scope.region} onChange={(event) => open(scope.project, event.target.value)}>
        <Missing id={scope.region} known={regions} />
        {regions.map(({ id, display_name }) => (
          <option key={id} value={id}>
            {display_name}
          </option>
        ))}
      </select>
    </div>
  );
}

function Missing({ id, known }: { id: number; known: readonly { id: number }[] }) {
  return known.some((each) => each.id === id) ? null : <option value={id}>{Number.isNaN(id) ? '–' : id}</option>;
}
