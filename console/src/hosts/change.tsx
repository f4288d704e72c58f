import { useParams } from '@tanstack/react-router';
import { request } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { pathOf } from '../ui/by-code.tsx';
import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { KIND } from './data.ts';

const CHANGES = {
  drain: {
    title: 'Drain',
    operationId: 'drainHost',
    text: 'Its addresses and NFS groups move to other hosts, one group at a time. It stays drained until it is undrained.',
  },
  undrain: {
    title: 'Undrain',
    operationId: 'undrainHost',
    text: 'It takes addresses and NFS groups again.',
  },
} as const;

export const DrainHost = () => <ChangeDialog change="drain" />;
export const UndrainHost = () => <ChangeDialog change="undrain" />;

const useHost = () => useParams({ strict: false }) as { hostRegion: string; host: string };

function ChangeDialog({ change }: { readonly change: keyof typeof CHANGES }) {
  const scope = useScope();
  const leave = useLeave();
  const { hostRegion, host } = useHost();
  const { title, operationId, text } = CHANGES[change];
  const path = `/cloudyard/v1/hosts/{region_id}/{host_name}/${change}`;
  const params = { region_id: hostRegion, host_name: host };
  const form = useForm({
    call: { operationId, method: 'POST', path, params },
    schema: {},
    initial: {},
    send: async () => {
      await request('POST', pathOf({ path, params }));
      showToast({ tone: 'ok', text: change === 'drain' ? `Host ${host} drains` : `Host ${host} serves again` });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('hosts') });
    },
  });
  return (
    <FormDialog title={`${title} host ${host}`} form={form} submitLabel={`${title} host`}>
      <p>{text}</p>
    </FormDialog>
  );
}

const FORGET = { title: 'Forget', busy: 'Forgetting', done: 'Forgot' };

export function ForgetHost() {
  const scope = useScope();
  const { hostRegion, host } = useHost();
  return (
    <DeleteDialog
      kind="host"
      name={host}
      verbs={FORGET}
      queryKind={KIND}
      listPath={scope.path('hosts')}
      call={{
        operationId: 'forgetHost',
        path: '/cloudyard/v1/hosts/{region_id}/{host_name}',
        params: { region_id: hostRegion, host_name: host },
      }}
    >
      An agent that starts again under this name joins as a new host.
    </DeleteDialog>
  );
}
