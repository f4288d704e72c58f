import schema from 'schema:UpdateNetwork';
import { editedNameAndTags, tagsForEdit } from '../ui/form/changes.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentNetwork, type Network, networkParams } from './data.ts';

const PATH = '/cloud/v2/networks/{project_id}/{region_id}/{network_id}';

export function EditNetwork() {
  return <CurrentNetwork>{(network) => <EditDialog network={network} />}</CurrentNetwork>;
}

function EditDialog({ network: current }: { network: Network }) {
  const network = useInitial(current);
  const scope = useScope();
  const form = useRequestForm({
    call: { operationId: 'updateNetwork', method: 'PATCH', path: PATH, params: networkParams(scope, network.id) },
    schema,
    isEdit: true,
    initial: { name: network.name, tags: tagsForEdit(network.tags) },
    toBody: (values) => editedNameAndTags(network, values),
    queryKind: 'networks',
    sent: () => ({
      busy: `Updating network ${network.name}`,
      done: `Updated network ${network.name}`,
      link: { to: scope.path('networks', network.id), text: 'Open' },
      to: scope.path('networks', network.id),
    }),
  });
  return (
    <FormDialog title={`Edit ${network.name}`} form={form} submitLabel="Save">
      <Field form={form} path="name" label="Name" />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}
