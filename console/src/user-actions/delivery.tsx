import { useMutation, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../api/client.ts';
import { messageOf } from '../api/errors.ts';
import { queryClient } from '../api/query-client.ts';
import { ActionButton } from '../ui/action-button.tsx';
import { ByCode } from '../ui/by-code.tsx';
import { Attempts } from '../notifications/attempts.tsx';
import { Card, Properties } from '../ui/detail-page.tsx';
import { NotLoaded } from '../ui/states.tsx';
import { StatusBadge } from '../ui/status.tsx';
import { FullDate } from '../ui/time.tsx';
import { showToast } from '../ui/toasts.tsx';
import { DELIVERY, deliveryQuery, KIND } from './data.ts';

const REPLAY = `${DELIVERY}/replay` as const;

/** Whether the subscriber has got the action, and a button that sends it again. */
export function Delivery({ id }: { id: string }) {
  const query = useQuery(deliveryQuery(id));
  if (query.data === undefined) return <NotLoaded query={query} rows={2} />;
  if (!query.data) return <p className="muted">The action was not sent: it is older than the subscription.</p>;
  const { state, failures, next_attempt_at: next, attempts } = query.data;
  const call = {
    operationId: 'replayUserActionDelivery',
    method: 'POST',
    path: REPLAY,
    params: { user_action_id: id },
  };
  return (
    <Card title="Delivery" actions={<Resend id={id} />}>
      <Properties
        items={{
          State: <StatusBadge status={state} />,
          'Failed attempts': failures,
          'Next attempt': next && <FullDate at={next} />,
        }}
      />
      <Attempts target="the subscriber" attempts={attempts} />
      <div className="card-body">
        <ByCode calls={[call]} />
      </div>
    </Card>
  );
}

function Resend({ id }: { id: string }) {
  const mutation = useMutation({
    mutationFn: () => unwrap(api.POST(REPLAY, { params: { path: { user_action_id: Number(id) } } })),
    onSuccess: () => showToast({ tone: 'ok', text: 'The action is sent again' }),
    onError: (error) => showToast({ tone: 'bad', text: messageOf(error) }),
    onSettled: () => queryClient.invalidateQueries({ queryKey: [KIND] }),
  });
  return (
    <ActionButton className="small" isDisabled={mutation.isPending} onClick={() => mutation.mutate()}>
      Resend
    </ActionButton>
  );
}
