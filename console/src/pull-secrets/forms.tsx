import createSchema from 'schema:CreatePullSecret';
import updateSchema from 'schema:UpdatePullSecret';
import { changesOf } from '../ui/form/changes.ts';
import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { CurrentSecret, KIND, type PullSecret, SECRET, secretParams, SECRETS } from './data.ts';

export function CreatePullSecret() {
  const scope = useScope();
  const form = useRequestForm<PullSecret>({
    call: { operationId: 'createPullSecret', method: 'POST', path: SECRETS, params: scopeParams(scope) },
    schema: createSchema,
    initial: { name: '', registry: '', login: '', password: '' },
    queryKind: KIND,
    sent: (_body, { name }) => ({ done: `Created pull secret ${name}`, to: scope.path('pull-secrets', name) }),
  });
  return (
    <FormDialog title="Create pull secret" form={form} submitLabel="Create pull secret">
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="registry" label="Registry" placeholder="registry.example.com:5000" />
      <Field form={form} path="login" label="Login" help="" />
      <Field form={form} path="password" label="Password" type="password" />
    </FormDialog>
  );
}

export function EditPullSecret() {
  return <CurrentSecret>{(secret) => <EditDialog secret={secret} />}</CurrentSecret>;
}

function EditDialog({ secret: current }: { secret: PullSecret }) {
  const secret = useInitial(current);
  const scope = useScope();
  const initial = { registry: secret.registry, login: secret.login, password: '' };
  const form = useRequestForm({
    call: { operationId: 'updatePullSecret', method: 'PATCH', path: SECRET, params: secretParams(scope, secret.name) },
    schema: updateSchema,
    initial,
    isEdit: true,
    // A password that was not typed is unchanged: the API does not return it.
    toBody: (values) => changesOf(initial, values),
    queryKind: KIND,
    sent: () => ({ done: `Changed pull secret ${secret.name}`, to: scope.path('pull-secrets', secret.name) }),
  });
  return (
    <FormDialog title={`Edit ${secret.name}`} form={form} submitLabel="Save">
      <Field form={form} path="registry" label="Registry" help="" />
      <Field form={form} path="login" label="Login" help="" />
      <Field
        form={form}
        path="password"
        label="New password"
        type="password"
        help="Empty: the password is unchanged."
      />
    </FormDialog>
  );
}

export function DeletePullSecret() {
  const scope = useScope();
  return (
    <CurrentSecret>
      {({ name }) => (
        <DeleteDialog
          kind="pull secret"
          name={name}
          queryKind={KIND}
          listPath={scope.path('pull-secrets')}
          call={{ operationId: 'deletePullSecret', path: SECRET, params: secretParams(scope, name) }}
        >
          Containers can no longer pull images with it. This cannot be undone.
        </DeleteDialog>
      )}
    </CurrentSecret>
  );
}
