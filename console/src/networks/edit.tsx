import schema from 'schema:UpdateNetwork';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { editedNameAndTags, tagsForEdit } from '../ui/form/tags.ts';
import { useForm, useInitial } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { trackTasks } from '../ui/task-tracking.ts';
import { CurrentNetwork, type Network, networkParams } from './data.ts';

const PATH = '/cloud/v2/networks/{project_id}/{region_id}/{network_id}';

export function EditNetwork() {
  return <CurrentNetwork>{(network) => <EditDialog network={network} />}</CurrentNetwork>;
}

function EditDialog({ network: current }: { network: Network }) {
  const network = useInitial(current);
  const scope = useScope();
  const leave = useLeave();
  const params = networkParams(scope, network.id);
  const form = useForm({
    schema,
    isEdit: true,
    initial: { name: network.name, tags: tagsForEdit(network.tags) },
    toBody: (values) => editedNameAndTags(network, values),
    send: async (body) => {
      const { tasks } = await unwrap(api.PATCH(PATH, { params: { path: params }, body: body as never }));
      trackTasks(tasks, scope, {
        busy: `Updating network ${network.name}`,
        done: `Updated network ${network.name}`,
        link: { to: scope.path('networks', network.id), text: 'Open' },
      });
      void queryClient.invalidateQueries({ queryKey: ['networks'] });
      await leave({ to: scope.path('networks', network.id) });
    },
  });
  return (
    <FormDialog
      title={`Edit ${network.name}`}
      form={form}
      submitLabel="Save"
      call={{ operationId: 'updateNetwork', method: 'PATCH', path: PATH, params }}
    >
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
