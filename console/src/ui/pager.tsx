import { type ReactNode, useEffect, useRef } from 'react';
import { ActionButton } from './action-button.tsx';
import { Icon } from './icons.tsx';
import { PAGE_SIZE } from './list-state.ts';
import { formatNumber } from './numbers.ts';

interface PageStep {
  readonly label: string;
  /** Null where there are no rows in this direction. */
  readonly go: (() => void) | null;
}

interface PageButtonsProps {
  readonly back: PageStep;
  readonly forward: PageStep;
  readonly children?: ReactNode;
}

/** Two buttons below a list, which show other rows. The list is then shown from its start, and the button keeps the focus. */
export function PageButtons({ back, forward, children }: PageButtonsProps) {
  const nav = useRef<HTMLElement>(null);
  const start = ({ go }: PageStep) => {
    go?.();
    nav.current!.closest('.card')!.scrollIntoView();
  };
  return (
    <nav ref={nav} className="pager" aria-label="Pages">
      {children}
      <ActionButton className="small" isDisabled={back.go === null} onClick={() => start(back)}>
        <Icon name="left" /> {back.label}
      </ActionButton>
      <ActionButton className="small" isDisabled={forward.go === null} onClick={() => start(forward)}>
        {forward.label} <Icon name="right" />
      </ActionButton>
    </nav>
  );
}

interface PagerProps {
  /** From 1. */
  readonly page: number;
  /** Number of all rows. */
  readonly count: number;
  readonly setPage: (page: number) => void;
}

/** Previous and next page; nothing where one page shows all. A page that does not exist any more becomes the last one. */
export function Pager({ page, count, setPage }: PagerProps) {
  const last = Math.max(1, Math.ceil(count / PAGE_SIZE));
  useEffect(() => {
    if (page > last) setPage(last);
  });
  if (last <= 1) return null;
  const first = (page - 1) * PAGE_SIZE + 1;
  return (
    <PageButtons
      back={{ label: 'Previous', go: page > 1 ? () => setPage(page - 1) : null }}
      forward={{ label: 'Next', go: page < last ? () => setPage(page + 1) : null }}
    >
      <span className="num" role="status">
        {formatNumber(first)}–{formatNumber(Math.min(count, page * PAGE_SIZE))} of {formatNumber(count)}
      </span>
    </PageButtons>
  );
}
