import { useQuery } from '@tanstack/react-query';
import schema from 'schema:SetNotificationThreshold';
import { useLimitedReason, useSession } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { THRESHOLD, type Threshold, thresholdQuery } from './data.ts';

export function EditThreshold() {
  const { data } = useQuery(thresholdQuery(useSession().client_id));
  return data === undefined ? null : <ThresholdDialog threshold={data} />;
}

function ThresholdDialog({ threshold }: { threshold: Threshold }) {
  const scope = useScope();
  const params = { client_id: useSession().client_id };
  const form = useRequestForm({
    call: { operationId: 'setNotificationThreshold', method: 'PUT', path: THRESHOLD, params },
    schema,
    isEdit: true,
    initial: { threshold: threshold.threshold },
    queryKind: 'thresholds',
    sent: ({ threshold }) => ({
      done: `Notifications are sent at ${String(threshold)} %`,
      to: scope.path('quotas'),
    }),
  });
  return (
    <FormDialog
      title="Notification threshold"
      form={form}
      canBeUnchanged
      submitLabel="Save"
      disabledReason={useLimitedReason()}
    >
      <Field form={form} path="threshold" label="Percent of a quota" />
    </FormDialog>
  );
}
