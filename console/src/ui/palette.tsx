import { useNavigate } from '@tanstack/react-router';
import { type KeyboardEvent, type MouseEvent, useEffect, useState } from 'react';
import { focusContent } from './focus-content.ts';
import { useModal } from './modal.ts';
import { currentPageActions } from './page-actions.ts';
import { useScope } from './scope.tsx';
import { useVisiblePages } from './visible-pages.ts';

interface Action {
  readonly title: string;
  readonly group: 'This page' | 'Go to' | 'Create';
  readonly to: string;
}

function useActions(): readonly Action[] {
  const scope = useScope();
  const pages = useVisiblePages();
  return [
    ...currentPageActions().map((action) => ({ ...action, group: 'This page' as const })),
    ...pages.map(({ title, path }) => ({ title, group: 'Go to' as const, to: scope.path(path) })),
    ...pages.flatMap(({ create }) =>
      create ? [{ title: create.title, group: 'Create' as const, to: scope.path(...create.path.split('/')) }] : [],
    ),
  ];
}

/** Whether every word of the query occurs in the text. */
function matches(query: string, text: string): boolean {
  const target = text.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => target.includes(word));
}

/** Ctrl-K: a list of pages and actions, filtered by what is typed. */
export function Palette({ close }: { close: () => void }) {
  const dialog = useModal();
  const [query, setQuery] = useState('');
  const [index, setIndex] = useState(0);
  const navigate = useNavigate();
  const found = useActions().filter((action) => matches(query, `${action.group} ${action.title}`));
  useEffect(() => {
    dialog.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [index]);
  function run(action: Action | undefined): void {
    if (!action) return;
    close();
    // The focus would be where it was before; the form of an action takes it itself.
    void navigate({ to: action.to }).then(focusContent);
  }
  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setIndex((index + step + found.length) % Math.max(found.length, 1));
    }
    if (event.key !== 'Enter') return;
    // The focus returns to the form below, which the key would send.
    event.preventDefault();
    run(found[index]);
  }
  return (
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Go to or create"
      onCancel={close}
      onClick={closeOnBackdrop(close)}
    >
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={found[index] ? `palette-${index}` : undefined}
        aria-label="Page or action"
        placeholder="Go to a page, create a resource…"
        value={query}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setQuery(event.target.value);
          setIndex(0);
        }}
      />
      <Results found={found} index={index} run={run} />
    </dialog>
  );
}

interface ResultsProps {
  readonly found: readonly Action[];
  /** Of the selected action. */
  readonly index: number;
  readonly run: (action: Action) => void;
}

function Results({ found, index, run }: ResultsProps) {
  return (
    <div id="palette-list" role="listbox" aria-label="Results" tabIndex={-1}>
      {found.map((action, position) => (
        <div
          key={`${action.group} ${action.to}`}
          id={`palette-${position}`}
          role="option"
          aria-selected={position === index}
          tabIndex={-1}
          onClick={() => run(action)}
        >
          <span>{action.title}</span>
          <span className="muted">{action.group}</span>
        </div>
      ))}
      {found.length === 0 && <p className="state">Nothing matches</p>}
    </div>
  );
}

function closeOnBackdrop(close: () => void) {
  return (event: MouseEvent) => {
    if (event.target === event.currentTarget) close();
  };
}
