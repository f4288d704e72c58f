import schema from 'schema:UpdateApiKey';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { type Form, useForm, useInitial, type Values } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { type ApiKey, CurrentKey, KEY, keyParams, KIND } from './data.ts';
import { KeyFields } from './fields.tsx';

/** A form that changes one key, without a task. */
function useKeyForm(key: ApiKey, initial: Values, toBody: (values: Values) => Values, done: string): Form {
  const scope = useScope();
  const leave = useLeave();
  return useForm({
    schema,
    initial,
    isEdit: true,
    toBody,
    send: async (body) => {
      await unwrap(api.PATCH(KEY, { params: { path: keyParams(scope, key.name) }, body: body as never }));
      showToast({ tone: 'ok', text: done });
      void queryClient.invalidateQueries({ queryKey: [KIND] });
      await leave({ to: scope.path('api-keys', key.name) });
    },
  });
}

export function EditApiKey() {
  return <CurrentKey>{(key) => <EditDialog apiKey={key} />}</CurrentKey>;
}

function EditDialog({ apiKey: current }: { apiKey: ApiKey }) {
  const apiKey = useInitial(current);
  const params = keyParams(useScope(), apiKey.name);
  const initial = {
    containers: apiKey.containers.map(({ namespace, name }) => ({ namespace, name })),
    expire: apiKey.expire ?? undefined,
    description: apiKey.description,
  };
  // Only what changed is sent; an emptied date is null.
  const changed = (values: Values) =>
    Object.fromEntries(
      Object.entries(initial)
        .filter(([name, value]) => JSON.stringify(values[name]) !== JSON.stringify(value))
        .map(([name]) => [name, values[name] ?? null]),
    );
  const form = useKeyForm(apiKey, initial, changed, `Changed API key ${apiKey.name}`);
  return (
    <FormDialog
      title={`Edit ${apiKey.name}`}
      form={form}
      submitLabel="Save"
      call={{ operationId: 'updateApiKey', method: 'PATCH', path: KEY, params }}
    >
      <KeyFields form={form} />
    </FormDialog>
  );
}

export function DisableApiKey() {
  return <CurrentKey>{(key) => <SwitchDialog apiKey={key} isDisabled />}</CurrentKey>;
}

export function EnableApiKey() {
  return <CurrentKey>{(key) => <SwitchDialog apiKey={key} isDisabled={false} />}</CurrentKey>;
}

function SwitchDialog({ apiKey, isDisabled }: { apiKey: ApiKey; isDisabled: boolean }) {
  const params = keyParams(useScope(), apiKey.name);
  const [verb, done] = isDisabled ? ['Disable', 'Disabled'] : ['Enable', 'Enabled'];
  const form = useKeyForm(apiKey, { is_disabled: isDisabled }, (values) => values, `${done} API key ${apiKey.name}`);
  return (
    <FormDialog
      title={`${verb} ${apiKey.name}`}
      form={form}
      canBeUnchanged
      submitLabel={verb}
      call={{ operationId: 'updateApiKey', method: 'PATCH', path: KEY, params }}
    >
      <p>
        {isDisabled
          ? 'Servers reject the key until it is enabled again. Its secret does not change.'
          : 'The key opens its containers again with the same secret.'}
      </p>
    </FormDialog>
  );
}
