import schema from 'schema:UpdateSubnet';
import { api, unwrap } from '../api/client.ts';
import { queryClient } from '../api/query-client.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { editedNameAndTags, tagsForEdit } from '../ui/form/tags.ts';
import { useForm, useInitial, type Values } from '../ui/form/use-form.ts';
import { useLeave } from '../ui/form/use-leave.ts';
import { useScope } from '../ui/scope.tsx';
import { showToast } from '../ui/toasts.tsx';
import { CurrentSubnet, SUBNET, type Subnet, subnetParams } from '../networks/data.ts';
import { AddressFields } from './fields.tsx';

export function EditSubnet() {
  return <CurrentSubnet>{(subnet) => <EditDialog subnet={subnet} />}</CurrentSubnet>;
}

function EditDialog({ subnet: current }: { subnet: Subnet }) {
  const subnet = useInitial(current);
  const scope = useScope();
  const leave = useLeave();
  const params = subnetParams(scope, subnet.id);
  const { name, gateway_ip, enable_dhcp, dns_nameservers, host_routes } = subnet;
  const form = useForm({
    schema,
    isEdit: true,
    initial: {
      ...{ name, enable_dhcp, dns_nameservers, host_routes },
      gateway_ip: gateway_ip ?? '',
      no_gateway: gateway_ip === null,
      tags: tagsForEdit(subnet.tags),
    },
    toBody: (values) => editedFields(subnet, values),
    send: async (body) => {
      const updated = await unwrap(api.PATCH(SUBNET, { params: { path: params }, body: body as never }));
      showToast({ tone: 'ok', text: `Updated subnet ${updated.name}` });
      await queryClient.invalidateQueries({ queryKey: ['subnets'] });
      await leave({ to: scope.path('subnets', subnet.id) });
    },
  });
  return (
    <FormDialog
      title={`Edit ${subnet.name}`}
      form={form}
      submitLabel="Save"
      call={{ operationId: 'updateSubnet', method: 'PATCH', path: SUBNET, params }}
    >
      <Field form={form} path="name" label="Name" />
      <AddressFields form={form} gatewayHelp="An address of the range." />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}

const FIELDS = ['enable_dhcp', 'dns_nameservers', 'host_routes', 'gateway_ip'] as const;

/** Only what changed is sent. */
function editedFields(before: Subnet, { no_gateway, ...values }: Values): Values {
  const after = { ...values, gateway_ip: no_gateway === true ? null : values['gateway_ip'] } as Values;
  const changed = FIELDS.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
  return { ...editedNameAndTags(before, values), ...Object.fromEntries(changed.map((field) => [field, after[field]])) };
}
