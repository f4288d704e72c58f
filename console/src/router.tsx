import { type AnyRoute, createRootRoute, createRoute, createRouter } from '@tanstack/react-router';
import { createPageHistory } from './page-history.ts';
import { pages } from './pages.ts';
import { Frame } from './ui/frame.tsx';
import { NotFound, PageError } from './ui/page-error.tsx';
import { EnterScope } from './ui/scope.tsx';
import { SessionGate } from './ui/sign-in.tsx';
import type { PageRoute } from './ui/page.ts';

const root = createRootRoute({ component: SessionGate, notFoundComponent: NotFound });
const entry = createRoute({ getParentRoute: () => root, path: '/', component: EnterScope });
const projectOnly = createRoute({ getParentRoute: () => root, path: 'p/$project', component: EnterScope });
const scope = createRoute({ getParentRoute: () => root, path: 'p/$project/r/$region', component: Frame });
const scopeIndex = createRoute({ getParentRoute: () => scope, path: '/', component: EnterScope });

function toRoute(parent: AnyRoute, { path, component, children = [] }: PageRoute): AnyRoute {
  const route = createRoute({ getParentRoute: () => parent, path, component, errorComponent: PageError });
  return route.addChildren(children.map((child) => toRoute(route, child))) as AnyRoute;
}

const pageRoutes = pages.flatMap((page) => page.routes.map((route) => toRoute(scope, route)));
/** Inside the frame, so that the navigation stays. */
const unknownPage = createRoute({ getParentRoute: () => scope, path: '$', component: NotFound });

/** The root, the frame and the page: what follows is a dialog. */
const PAGE_DEPTH = 3;

export const router = createRouter({
  routeTree: root.addChildren([entry, projectOnly, scope.addChildren([scopeIndex, ...pageRoutes, unknownPage])]),
  basepath: '/console',
  history: createPageHistory((): boolean => router.state.matches.length > PAGE_DEPTH),
  defaultPreload: 'intent',
  defaultNotFoundComponent: NotFound,
  // Every parameter of the URL is text.
  parseSearch: (search) => Object.fromEntries(new URLSearchParams(search)),
  stringifySearch: (search) => {
    const entries = Object.entries(search).filter(([, value]) => value !== undefined && value !== '');
    const text = new URLSearchParams(entries as [string, string][]).toString();
    return text === '' ? '' : `?${text}`;
  },
});
