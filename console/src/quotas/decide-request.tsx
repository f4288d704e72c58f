import { useParams } from '@tanstack/react-router';
import approveSchema from 'schema:ApproveQuotaRequest';
import declineSchema from 'schema:DeclineQuotaRequest';
import { request } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useNotOperatorReason } from '../api/session.ts';
import { pathOf } from '../ui/by-code.tsx';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';

const DECISIONS = {
  approve: { title: 'Approve', done: 'approved', operationId: 'approveQuotaRequest', schema: approveSchema },
  decline: { title: 'Decline', done: 'declined', operationId: 'declineQuotaRequest', schema: declineSchema },
} as const;

export const ApproveQuotaRequest = () => <DecisionDialog decision="approve" />;
export const DeclineQuotaRequest = () => <DecisionDialog decision="decline" />;

function DecisionDialog({ decision }: { decision: keyof typeof DECISIONS }) {
  const scope = useScope();
  const leave = useLeave();
  const { request: id } = useParams({ strict: false }) as { request: string };
  const { title, done, operationId, schema } = DECISIONS[decision];
  const path = `/cloudyard/v1/limits_requests/{request_id}/${decision}`;
  const params = { request_id: id };
  const form = useForm({
    call: { operationId, method: 'POST', path, params },
    schema,
    initial: { reason: '' },
    send: async (body) => {
      await request('POST', pathOf({ path, params }), body);
      showToast({ tone: 'ok', text: `Request ${id} is ${done}` });
      void queryClient.invalidateQueries({ queryKey: ['quota_requests'] });
      void queryClient.invalidateQueries({ queryKey: ['quotas'] });
      await leave({ to: scope.path('quotas') });
    },
  });
  return (
    <FormDialog
      title={`${title} request ${id}`}
      form={form}
      submitLabel={title}
      disabledReason={useNotOperatorReason()}
    >
      <Field form={form} path="reason" label="Reason" type="textarea" />
    </FormDialog>
  );
}
