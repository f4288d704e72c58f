import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ActionButton } from './action-button.tsx';
import { useTitle } from './title.ts';
import './kept-focus.ts';

export interface Crumb {
  readonly title: string;
  readonly to: string;
}

interface PageHeadProps {
  readonly title: string;
  /** Pages above this one. */
  readonly crumbs?: readonly Crumb[];
  /** Beside the title: status, simulated. */
  readonly badges?: ReactNode;
  readonly actions?: ReactNode;
  readonly children?: ReactNode;
}

export function PageHead({ title, crumbs = [], badges, actions, children }: PageHeadProps) {
  useTitle(title);
  return (
    <>
      {crumbs.length > 0 && (
        <nav className="crumbs" aria-label="Breadcrumbs">
          <ol>
            {crumbs.map((crumb) => (
              <li key={crumb.to}>
                <Link to={crumb.to}>{crumb.title}</Link>
              </li>
            ))}
            <li aria-current="page">
              <bdi>{title}</bdi>
            </li>
          </ol>
        </nav>
      )}
      <div className="page-head">
        <div>
          <h1>
            <bdi>{title}</bdi> {badges}
          </h1>
          {children}
        </div>
        {actions && <div className="row">{actions}</div>}
      </div>
    </>
  );
}

/** The page below a dialog keeps its tab, filter and page. */
export const keepSearch = ((search: object) => search) as never;

interface ActionLinkProps {
  readonly to: string;
  readonly children: ReactNode;
  readonly className?: string;
  /** Why the action is not available; the link is then disabled and says so. */
  readonly disabledReason?: string | null | undefined;
  readonly shortcut?: string;
  /** Parameters of the dialog; by default those of the page below it. */
  readonly search?: Readonly<Record<string, string>>;
}

/** A button that opens a dialog by its URL. */
export function ActionLink({ to, children, className = '', disabledReason, shortcut, search }: ActionLinkProps) {
  if (disabledReason) {
    return (
      <ActionButton className={className} disabledReason={disabledReason}>
        {children}
      </ActionButton>
    );
  }
  return (
    <Link
      to={to}
      search={(search as never) ?? keepSearch}
      className={`button ${className}`}
      data-shortcut={shortcut}
      // The page below the dialog stays where it is.
      resetScroll={false}
    >
      {children}
    </Link>
  );
}

interface ActionLinksProps {
  /** The texts of the actions, by the last part of their paths. */
  readonly actions: Readonly<Record<string, string>>;
  readonly to: (action: string) => string;
  readonly disabledReason: string | null;
}

/** The actions of a page; `delete` is shown as dangerous. */
export function ActionLinks({ actions, to, disabledReason }: ActionLinksProps) {
  return Object.entries(actions).map(([action, text]) => (
    <ActionLink
      key={action}
      to={to(action)}
      className={action === 'delete' ? 'danger' : ''}
      disabledReason={disabledReason}
    >
      {text}
    </ActionLink>
  ));
}
