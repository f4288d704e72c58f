import schema from 'schema:CreateProject';
import { useNotClientAdminReason } from '../api/session.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { HOME, useScope } from '../ui/scope.tsx';
import { KIND, type Project } from './data.ts';

const PATH = '/cloud/v1/projects';

export function CreateProject() {
  const scope = useScope();
  const reason = useNotClientAdminReason();
  const form = useRequestForm<Project>({
    call: { operationId: 'createProject', method: 'POST', path: PATH, params: {} },
    schema,
    initial: { name: '', description: '' },
    queryKind: KIND,
    sent: (_body, { id, name }) => {
      const link = { to: `/p/${id}/r/${scope.region}/${HOME}`, text: 'Open' };
      return { done: `Created project ${name}`, link, to: scope.path('projects') };
    },
  });
  return (
    <FormDialog title="Create project" form={form} submitLabel="Create project" disabledReason={reason}>
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="description" label="Description" type="textarea" />
    </FormDialog>
  );
}
