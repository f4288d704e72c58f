import schema from 'schema:UpdateApiKey';
import { changesOf } from '../ui/form/changes.ts';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { type Form, useInitial, type Values } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { type ApiKey, CurrentKey, KEY, keyParams, KIND } from './data.ts';
import { KeyFields } from './fields.tsx';

/** A form that changes one key, without a task. */
function useKeyForm(key: ApiKey, initial: Values, toBody: (values: Values) => Values, done: string): Form {
  const scope = useScope();
  return useRequestForm({
    call: { operationId: 'updateApiKey', method: 'PATCH', path: KEY, params: keyParams(scope, key.name) },
    schema,
    initial,
    isEdit: true,
    toBody,
    queryKind: KIND,
    sent: () => ({ done, to: scope.path('api-keys', key.name) }),
  });
}

export function EditApiKey() {
  return <CurrentKey>{(key) => <EditDialog apiKey={key} />}</CurrentKey>;
}

function EditDialog({ apiKey: current }: { apiKey: ApiKey }) {
  const apiKey = useInitial(current);
  const initial = {
    containers: apiKey.containers.map(({ namespace, name }) => ({ namespace, name })),
    expire: apiKey.expire ?? undefined,
    description: apiKey.description,
  };
  // An emptied date is null.
  const changed = (values: Values) =>
    changesOf({ ...initial, expire: apiKey.expire }, { ...values, expire: values['expire'] ?? null });
  const form = useKeyForm(apiKey, initial, changed, `Changed API key ${apiKey.name}`);
  return (
    <FormDialog title={`Edit ${apiKey.name}`} form={form} submitLabel="Save">
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
  const [verb, done] = isDisabled ? ['Disable', 'Disabled'] : ['Enable', 'Enabled'];
  const form = useKeyForm(apiKey, { is_disabled: isDisabled }, (values) => values, `${done} API key ${apiKey.name}`);
  return (
    <FormDialog title={`${verb} ${apiKey.name}`} form={form} canBeUnchanged submitLabel={verb}>
      <p>
        {isDisabled
          ? 'Servers reject the key until it is enabled again. Its secret does not change.'
          : 'The key opens its containers again with the same secret.'}
      </p>
    </FormDialog>
  );
}
