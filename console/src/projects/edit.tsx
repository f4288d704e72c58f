import schema from 'schema:UpdateProject';
import { useNotAdminReason } from '../api/session.ts';
import { changesOf } from '../ui/form/changes.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentProject } from './current-project.tsx';
import { KIND, type Project } from './data.ts';

const PATH = '/cloud/v1/projects/{project_id}';

export function EditProject() {
  return <CurrentProject>{(project) => <EditDialog project={project} />}</CurrentProject>;
}

function EditDialog({ project: current }: { project: Project }) {
  const project = useInitial(current);
  const scope = useScope();
  const reason = useNotAdminReason();
  const form = useRequestForm<Project>({
    call: { operationId: 'updateProject', method: 'PATCH', path: PATH, params: { project_id: project.id } },
    schema,
    isEdit: true,
    initial: { name: project.name, description: project.description ?? '' },
    toBody: ({ name, description }) => changesOf(project, { name, description: description || null }),
    queryKind: KIND,
    sent: (_body, { name }) => ({ done: `Updated project ${name}`, to: scope.path('projects', project.id) }),
  });
  return (
    <FormDialog title={`Edit ${project.name}`} form={form} submitLabel="Save" disabledReason={reason}>
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="description" label="Description" type="textarea" />
    </FormDialog>
  );
}
