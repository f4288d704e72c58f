import { useMutation } from '@tanstack/react-query';
import createSchema from 'schema:CreateRegistryUser';
import updateSchema from 'schema:UpdateRegistryUser';
import { useState } from 'react';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { changesOf } from '../ui/form/changes.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useForm, useInitial } from '../ui/form/use-form.ts';
import { CodeBlock } from '../ui/copy.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { SecretOnce } from '../ui/secret-once.tsx';
import { loginCommand } from './commands.ts';
import { CurrentUser } from './current-user.tsx';
import { CurrentRegistry, KIND, REGISTRY, type Registry, registryParams, type RegistryUser, USER } from './data.ts';

const USERS = `${REGISTRY}/users` as const;
const DURATION_HELP = 'Days from now until the user expires; -1: never';

export function CreateUser() {
  return <CurrentRegistry>{(registry) => <CreateDialog registry={registry} />}</CurrentRegistry>;
}

interface Created {
  readonly name: string;
  readonly secret: string;
}

/** Shows the secret in the place of the form. */
function SecretOfUser({ registry, user }: { registry: Registry; user: Created }) {
  return (
    <SecretOnce title={`Secret of user ${user.name}`} what="secret" secret={user.secret}>
      <p className="muted">Log in with it; docker asks for the secret:</p>
      <CodeBlock text={loginCommand(registry, user.name)} what="login command" />
    </SecretOnce>
  );
}

function CreateDialog({ registry }: { registry: Registry }) {
  const params = registryParams(useScope(), registry.id);
  const [created, setCreated] = useState<Created | null>(null);
  const form = useForm({
    call: { operationId: 'createRegistryUser', method: 'POST', path: USERS, params },
    schema: createSchema,
    initial: { name: '', duration: 90, read_only: false, secret: '' },
    send: async (body) => {
      setCreated(await unwrap(api.POST(USERS, { params: { path: params }, body: body as never })));
      void queryClient.invalidateQueries({ queryKey: [KIND] });
    },
  });
  if (created) return <SecretOfUser registry={registry} user={created} />;
  return (
    <FormDialog title={`Create a user of ${registry.name}`} form={form} submitLabel="Create user" isForSecret>
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="duration" label="Expires after (days)" help={DURATION_HELP} />
      <Field form={form} path="read_only" label="The user can only pull" help="" />
      <Field form={form} path="secret" label="Secret" type="password" />
    </FormDialog>
  );
}

export function EditUser() {
  return <CurrentUser>{(registry, user) => <EditDialog registry={registry} user={user} />}</CurrentUser>;
}

interface UserProps {
  readonly registry: Registry;
  readonly user: RegistryUser;
}

function EditDialog({ registry, user: current }: UserProps) {
  const user = useInitial(current);
  const scope = useScope();
  const params = { ...registryParams(scope, registry.id), user_id: user.id };
  const form = useRequestForm({
    call: { operationId: 'updateRegistryUser', method: 'PATCH', path: USER, params },
    schema: updateSchema,
    isEdit: true,
    initial: { duration: user.duration, read_only: user.read_only },
    // The server requires the duration.
    toBody: ({ duration, read_only }) => ({ duration, ...changesOf(user, { read_only }) }),
    queryKind: KIND,
    sent: () => ({
      done: `Changed user ${user.name}`,
      to: scope.path('registries', registry.id),
      search: { tab: 'users' },
    }),
  });
  return (
    <FormDialog title={`Edit user ${user.name}`} form={form} canBeUnchanged submitLabel="Save">
      <Field form={form} path="duration" label="Expires after (days)" help={`${DURATION_HELP}, 0: at once`} />
      <Field form={form} path="read_only" label="The user can only pull" help="" />
    </FormDialog>
  );
}

export function RefreshSecret() {
  return <CurrentUser>{(registry, user) => <RefreshDialog registry={registry} user={user} />}</CurrentUser>;
}

function RefreshDialog({ registry, user }: UserProps) {
  const params = { ...registryParams(useScope(), registry.id), user_id: user.id };
  const path = `${USER}/refresh_secret` as const;
  const refresh = useMutation({ mutationFn: () => unwrap(api.POST(path, { params: { path: params } })) });
  const form = useForm({
    call: { operationId: 'refreshRegistryUserSecret', method: 'POST', path, params },
    schema: {},
    initial: {},
    send: async () => void (await refresh.mutateAsync()),
  });
  if (refresh.data) return <SecretOfUser registry={registry} user={refresh.data} />;
  return (
    <FormDialog
      title={`Replace the secret of ${user.name}`}
      form={form}
      submitLabel="Replace secret"
      isForSecret
      isDangerous
    >
      <p className="notice warn">The old secret is refused. Clients need the new one to log in.</p>
    </FormDialog>
  );
}
