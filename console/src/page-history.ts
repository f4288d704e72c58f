import { createBrowserHistory, type HistoryLocation, type RouterHistory } from '@tanstack/react-router';

/**
 * The history of the browser without dialogs that were closed or sent, so that "back" does not open them again.
 *
 * A dialog has the path of its page and further segments. Navigation from a dialog to its page goes back in the history if the
 * page is the previous entry; otherwise the page replaces the dialog.
 */
export function createPageHistory(isDialogOpen: () => boolean): RouterHistory {
  const history = createBrowserHistory();
  /** The addresses of the entries by their index, as far as this document knows them. */
  const addresses = new Map<number, string>();
  const note = () => addresses.set(indexOf(history.location), history.location.href);
  note();
  history.subscribe(note);
  const push = history.push;
  history.push = (path, state, options) => {
    const from = history.location;
    const isOwnPage = from.pathname.startsWith(`${path.split('?')[0]}/`);
    if (!isOwnPage || !isDialogOpen()) push(path, state, options);
    else if (addresses.get(indexOf(from) - 1) === path) history.back(options);
    else history.replace(path, state, options);
  };
  return history;
}

/** The place of an entry in the history. The router counts it. */
function indexOf({ state: { __TSR_index: index } }: HistoryLocation): number {
  return index;
}
