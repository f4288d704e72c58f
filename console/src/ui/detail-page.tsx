import { Link, Outlet } from '@tanstack/react-router';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ApiError } from '../api/errors.ts';
import { DeletedElsewhere } from './deleted-elsewhere.tsx';
import { useListState } from './list-state.ts';
import { type Crumb, PageHead } from './page-head.tsx';
import { ErrorState, isGone, Skeleton, useLoadError } from './states.tsx';
import { SimulatedBadge, StatusBadge } from './status.tsx';

export interface Tab {
  /** In the URL: `?tab=tags`. */
  readonly key: string;
  readonly title: string;
  readonly render: () => ReactNode;
}

interface DetailPageProps<T> {
  /** The list. */
  readonly crumbs: readonly Crumb[];
  readonly query: UseQueryResult<T>;
  readonly driverKind?: string;
  readonly titleOf: (resource: T) => string;
  readonly statusOf?: (resource: T) => string;
  /** Above the tabs, such as why the resource failed. */
  readonly notice?: (resource: T) => ReactNode;
  readonly actions: (resource: T) => ReactNode;
  /** The first one is open without `?tab=`. */
  readonly tabs: (resource: T) => readonly Tab[];
}

/** One resource: title, status, actions and tabs. Its dialogs are child routes. */
export function DetailPage<T>(props: DetailPageProps<T>) {
  const { query, crumbs } = props;
  const loadError = useLoadError(query);
  if (query.data === undefined && !loadError) return <Skeleton rows={8} />;
  // The resource was deleted, here or elsewhere. Dialogs stay open, so that typed text is kept.
  if (query.data === undefined || isGone(query.error)) {
    return (
      <>
        <PageHead title="Not available" crumbs={crumbs} />
        <ErrorState error={loadError ?? query.error} retry={() => void query.refetch()} isRetrying={query.isFetching} />
        {query.data !== undefined && (
          <Dialogs key="dialogs" deleted={query.error instanceof ApiError && query.error.status === 404} />
        )}
      </>
    );
  }
  const resource = query.data;
  const status = props.statusOf?.(resource);
  return (
    <>
      <PageHead
        title={props.titleOf(resource)}
        crumbs={crumbs}
        badges={
          <>
            {status && <StatusBadge status={status} />}
            {props.driverKind && <SimulatedBadge kind={props.driverKind} />}
          </>
        }
        actions={props.actions(resource)}
      />
      {props.notice?.(resource)}
      <Tabs tabs={props.tabs(resource)} />
      <Dialogs key="dialogs" deleted={false} />
    </>
  );
}

/** With the same key in both states of the page, so that the dialog is not mounted again and keeps its text. */
function Dialogs({ deleted }: { deleted: boolean }) {
  return (
    <DeletedElsewhere what={deleted ? 'resource' : null}>
      <Outlet />
    </DeletedElsewhere>
  );
}

/** Tabs whose choice is in the URL. */
function Tabs({ tabs }: { tabs: readonly Tab[] }) {
  const state = useListState();
  const open = tabs.find(({ key }) => key === state.get('tab')) ?? tabs[0]!;
  return (
    <div className="stack">
      <nav className="tabs" aria-label="Sections">
        {tabs.map((tab) => (
          <Link
            key={tab.key}
            to="."
            search={{ tab: tab === tabs[0] ? undefined : tab.key } as never}
            activeOptions={{ exact: true }}
            aria-current={tab === open ? 'page' : undefined}
            resetScroll={false}
            replace
          >
            {tab.title}
          </Link>
        ))}
      </nav>
      {open.render()}
    </div>
  );
}

export function Card({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

const EMPTY: readonly ReactNode[] = [null, undefined, false, ''];

/** Names and values. Empty ones show a dash. */
export function Properties({ items }: { items: Readonly<Record<string, ReactNode>> }) {
  return (
    <dl className="properties card-body">
      {Object.entries(items).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{EMPTY.includes(value) ? <span className="muted">–</span> : value}</dd>
        </div>
      ))}
    </dl>
  );
}
