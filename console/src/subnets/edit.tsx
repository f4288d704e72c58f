import schema from 'schema:UpdateSubnet';
import { changesOf, editedNameAndTags, tagsForEdit } from '../ui/form/changes.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { useInitial, type Values } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { useScope } from '../ui/scope.tsx';
import { CurrentSubnet, SUBNET, type Subnet, subnetParams } from '../networks/data.ts';
import { AddressFields } from './fields.tsx';

export function EditSubnet() {
  return <CurrentSubnet>{(subnet) => <EditDialog subnet={subnet} />}</CurrentSubnet>;
}

function EditDialog({ subnet: current }: { subnet: Subnet }) {
  const subnet = useInitial(current);
  const scope = useScope();
  const { name, gateway_ip, enable_dhcp, dns_nameservers, host_routes } = subnet;
  const form = useRequestForm<Subnet>({
    call: { operationId: 'updateSubnet', method: 'PATCH', path: SUBNET, params: subnetParams(scope, subnet.id) },
    schema,
    isEdit: true,
    initial: {
      ...{ name, enable_dhcp, dns_nameservers, host_routes },
      gateway_ip: gateway_ip ?? '',
      no_gateway: gateway_ip === null,
      tags: tagsForEdit(subnet.tags),
    },
    toBody: (values) => editedFields(subnet, values),
    queryKind: 'subnets',
    sent: (_body, updated) => ({ done: `Updated subnet ${updated.name}`, to: scope.path('subnets', subnet.id) }),
  });
  return (
    <FormDialog title={`Edit ${subnet.name}`} form={form} submitLabel="Save">
      <Field form={form} path="name" label="Name" />
      <AddressFields form={form} gatewayHelp="An address of the range." />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}

/** Only what changed is sent. */
function editedFields(before: Subnet, { no_gateway, name, tags, ...values }: Values): Values {
  const after = { ...values, gateway_ip: no_gateway === true ? null : values['gateway_ip'] };
  return { ...editedNameAndTags(before, { name, tags }), ...changesOf(before, after) };
}
