import { useParams } from '@tanstack/react-router';
import { useNotClientAdminReason } from '../api/session.ts';
import { CodeBlock } from '../ui/copy.tsx';
import { DialogRoute } from '../ui/dialog.tsx';
import { EmptyState, NotLoaded } from '../ui/states.tsx';
import { useUserActions } from './data.ts';
import { Delivery } from './delivery.tsx';

/** The payload that the subscriber receives for one action of the page. */
export function Payload() {
  const { id } = useParams({ strict: false }) as { id: string };
  const query = useUserActions();
  const mayRead = useNotClientAdminReason() === null;
  const action = query.data?.results.find((each) => each.id === id);
  return (
    <DialogRoute title={`User action ${id}`} className="side-panel">
      {!query.data && <NotLoaded query={query} />}
      {query.data && !action && (
        <EmptyState title="Not found on this page of the list">Open the action from the list.</EmptyState>
      )}
      {action && (
        <div className="stack">
          <CodeBlock text={JSON.stringify(action, null, 2)} what="payload" />
          {mayRead && <Delivery id={id} />}
        </div>
      )}
    </DialogRoute>
  );
}
