import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { messageOf } from '../api/errors.ts';
import { useNotOperatorReason } from '../api/session.ts';
import { ActionButton } from '../ui/action-button.tsx';
import { ByCode } from '../ui/by-code.tsx';
import { Card } from '../ui/detail-page.tsx';
import { ActionLink } from '../ui/page-head.tsx';
import { useScope } from '../ui/scope.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { formatDate } from '../ui/time.tsx';
import { showToast } from '../ui/toasts.tsx';
import { CLOCK_PATH, clockQuery, moveClock, MOVING_REFRESH_MS } from './data.ts';

const STEPS = [
  { title: '1 hour', seconds: 3600 },
  { title: '1 day', seconds: 86_400 },
  { title: '1 week', seconds: 7 * 86_400 },
  { title: '30 days', seconds: 30 * 86_400 },
] as const;

/** Differences below this are delays of the network, not a moved clock. */
const MOVED_MS = 5000;

/** The clock of the server, with buttons that advance it. */
export function Clock() {
  const scope = useScope();
  const reason = useNotOperatorReason();
  const [body, setBody] = useState<object>({ advance_seconds: STEPS[0].seconds });
  const move = useMutation({
    mutationFn: moveClock,
    onError: (error) => showToast({ tone: 'bad', text: messageOf(error) }),
  });
  const query = useQuery({ ...clockQuery, ...(move.isPending && { refetchInterval: MOVING_REFRESH_MS }) });
  const act = (next: object) => {
    setBody(next);
    move.mutate(next);
  };
  return (
    <Card title="Clock">
      <div className="card-body stack">
        {query.data ? <Time {...query.data} /> : <NotLoaded query={query} rows={1} />}
        <p className="muted">Work that becomes due on the way is done, run by run. A long move can take a minute.</p>
        <div className="row" role="group" aria-label="Move the clock">
          {STEPS.map(({ title, seconds }) => (
            <ActionButton
              key={title}
              disabledReason={reason}
              isDisabled={move.isPending}
              onClick={() => act({ advance_seconds: seconds })}
            >
              Advance {title}
            </ActionButton>
          ))}
          <ActionLink to={scope.path('development', 'clock')} disabledReason={reason}>
            Set the time
          </ActionLink>
          <ActionButton disabledReason={reason} isDisabled={move.isPending} onClick={() => act({ real: true })}>
            Return to the real time
          </ActionButton>
          {move.isPending && (
            <span role="status">
              <span className="spinner" aria-hidden="true" /> Moving the clock
            </span>
          )}
        </div>
        <ByCode calls={[{ operationId: 'moveClock', method: 'POST', path: CLOCK_PATH, params: {}, body }]} />
      </div>
    </Card>
  );
}

/** Continues from the time that was read. */
function Time({ now, readAt }: { now: number; readAt: number }) {
  const [browserNow, setBrowserNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setBrowserNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const shown = new Date(now + Math.max(0, browserNow - readAt));
  const isMoved = Math.abs(now - readAt) > MOVED_MS;
  return (
    <p className="row">
      <strong>
        <time dateTime={shown.toISOString()}>{formatDate(shown)}</time>
      </strong>
      <span className={isMoved ? 'badge warn' : 'badge'}>{isMoved ? 'moved' : 'real time'}</span>
    </p>
  );
}
