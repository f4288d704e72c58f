import { useQuery } from '@tanstack/react-query';
import schema from 'schema:CreateToken';
import { useState } from 'react';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { useManagesClients, useNotAdminReason, useSession } from '../api/session.ts';
import { clientsQuery } from '../clients/data.ts';
import { ChecklistField } from '../ui/form/checklist-field.tsx';
import { DateField } from '../ui/form/date-field.tsx';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { type Form, useForm } from '../ui/form/use-form.ts';
import { useListState } from '../ui/list-state.ts';
import { projectsQuery } from '../ui/scope.tsx';
import { SecretOnce } from '../ui/secret-once.tsx';
import { KIND } from './data.ts';

const PATH = '/cloudyard/v1/tokens';

export function CreateToken() {
  const session = useSession();
  const reason = useNotAdminReason();
  // The list of the tokens of another client opens the form for that client.
  const listed = useListState().get('client');
  const isOther = useManagesClients() && listed !== '' && Number(listed) !== session.client_id;
  const [created, setCreated] = useState<{ readonly name: string; readonly token: string } | null>(null);
  const form = useForm({
    call: { operationId: 'createToken', method: 'POST', path: PATH, params: {} },
    schema,
    initial: {
      name: '',
      role: 'member',
      project_ids: session.project_ids ?? [],
      ...(isOther ? { client_id: Number(listed) } : {}),
    },
    toBody,
    send: async (body) => {
      setCreated(await unwrap(api.POST(PATH, { body: body as never })));
      void queryClient.invalidateQueries({ queryKey: [KIND] });
    },
  });
  const client = form.get('client_id') ?? session.client_id;
  const projects = useQuery(projectsQuery).data?.results ?? [];
  if (created) return <SecretOnce title={`Token ${created.name}`} what="token" secret={created.token} />;
  return (
    <FormDialog title="Create token" form={form} submitLabel="Create token" disabledReason={reason} isForSecret>
      <Field form={form} path="name" label="Name" help="Who or what uses the token." />
      <Field form={form} path="role" label="Role" />
      <ClientField form={form} />
      {client === session.client_id && (
        <ChecklistField
          form={form}
          path="project_ids"
          label="Projects"
          help="Without a choice, the token reaches all projects of the client."
          choices={projects.map(({ id, name }) => ({ value: id, label: name }))}
        />
      )}
      <DateField form={form} path="expires_at" label="Expires" help="Without a date, the token does not expire." />
    </FormDialog>
  );
}

/** No projects: all of them. */
function toBody({ project_ids, ...rest }: Readonly<Record<string, unknown>>) {
  const projects = rest['client_id'] === undefined ? (project_ids as readonly number[]) : [];
  return {
    ...rest,
    ...(projects.length > 0 ? { project_ids: projects } : {}),
  };
}

function ClientField({ form }: { form: Form }) {
  const { client_id } = useSession();
  const isOffered = useManagesClients();
  const clients = useQuery({ ...clientsQuery, enabled: isOffered }).data?.results ?? [];
  const others = clients.filter(({ id }) => id !== client_id);
  if (others.length === 0) return null;
  return (
    <Field
      form={form}
      path="client_id"
      label="Client"
      help="By default your own. A token of another client reaches all of its projects."
      choices={others.map(({ id, name }) => ({ value: String(id), label: name }))}
    />
  );
}
