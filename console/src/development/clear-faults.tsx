import { useNavigate } from '@tanstack/react-router';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { FAULTS_PATH, faultsQuery } from './data.ts';

export function ClearFaults() {
  const scope = useScope();
  const navigate = useNavigate();
  const form = useForm({
    schema: {},
    initial: {},
    send: async () => {
      await unwrap(api.DELETE(FAULTS_PATH, {}));
      showToast({ tone: 'ok', text: 'All faults are cleared' });
      void queryClient.invalidateQueries({ queryKey: faultsQuery.queryKey });
      await navigate({ to: scope.path('development') });
    },
  });
  return (
    <FormDialog
      title="Clear all faults"
      form={form}
      submitLabel="Clear all faults"
      isDangerous
      segments={2}
      call={{ operationId: 'clearFaults', method: 'DELETE', path: FAULTS_PATH, params: {} }}
    >
      <p className="notice warn">Later operations succeed again, and stalled operations continue.</p>
    </FormDialog>
  );
}
