import { useQuery } from '@tanstack/react-query';
import schema from 'schema:SetNotificationThreshold';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useLimitedReason, useSession } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { THRESHOLD, thresholdQuery } from './data.ts';
import type { Threshold } from './data.ts';

export function EditThreshold() {
  const { data } = useQuery(thresholdQuery(useSession().client_id));
  return data === undefined ? null : <ThresholdDialog threshold={data} />;
}

function ThresholdDialog({ threshold }: { threshold: Threshold }) {
  const scope = useScope();
  const leave = useLeave();
  const params = { client_id: useSession().client_id };
  const done = async (text: string) => {
    showToast({ tone: 'ok', text });
    void queryClient.invalidateQueries({ queryKey: ['thresholds'] });
    await leave({ to: scope.path('quotas') });
  };
  const form = useForm({
    schema,
    isEdit: true,
    initial: { threshold: threshold.threshold },
    send: async (body) => {
      await unwrap(api.PUT(THRESHOLD, { params: { path: params }, body: body as never }));
      await done(`Notifications are sent at ${String(body['threshold'])} %`);
    },
  });
  return (
    <FormDialog
      title="Notification threshold"
      form={form}
      canBeUnchanged
      submitLabel="Save"
      disabledReason={useLimitedReason()}
      call={{ operationId: 'setNotificationThreshold', method: 'PUT', path: THRESHOLD, params }}
    >
      <Field form={form} path="threshold" label="Percent of a quota" />
    </FormDialog>
  );
}
