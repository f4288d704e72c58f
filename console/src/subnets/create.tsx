import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import schema from 'schema:CreateSubnet';
import { networksQuery } from '../networks/data.ts';
import { NoNetworkYet } from '../networks/none-yet.tsx';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { type Values, withoutEmpty } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { AddressFields } from './fields.tsx';

const PATH = '/cloud/v1/subnets/{project_id}/{region_id}';

export function CreateSubnet() {
  const scope = useScope();
  return <CreateDialog back={scope.path('subnets')} />;
}

/** The form on the page of a network. */
export function CreateNetworkSubnet() {
  const scope = useScope();
  const { id } = useParams({ strict: false }) as { id: string };
  return <CreateDialog networkId={id} back={scope.path('networks', id)} />;
}

function CreateDialog({ networkId, back }: { networkId?: string; back: string }) {
  const scope = useScope();
  const networksRead = useQuery(networksQuery(scope)).data?.results;
  const networks = networksRead ?? [];
  const form = useRequestForm({
    call: { operationId: 'createSubnet', method: 'POST', path: PATH, params: scopeParams(scope) },
    schema,
    initial: { name: '', cidr: '', enable_dhcp: true, ...(networkId ? { network_id: networkId } : {}) },
    toBody,
    queryKind: 'subnets',
    sent: ({ name }) => ({
      busy: `Creating subnet ${String(name)}`,
      done: `Created subnet ${String(name)}`,
      link: { to: scope.path('subnets'), text: 'Subnets' },
      to: back,
    }),
  });
  return (
    <FormDialog title="Create subnet" form={form} submitLabel="Create subnet">
      <Field form={form} path="name" label="Name" />
      <Field
        form={form}
        path="network_id"
        label="Network"
        help={networksRead?.length === 0 && <NoNetworkYet />}
        disabled={networkId !== undefined}
        choices={networks.map(({ id, name }) => ({ value: id, label: name }))}
      />
      <Field form={form} path="cidr" label="Address range" placeholder="10.0.0.0/24" />
      <AddressFields form={form} gatewayHelp="By default the first address of the range." />
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}

function toBody({ no_gateway, gateway_ip, ...values }: Values): Values {
  const gateway = no_gateway === true ? { gateway_ip: null } : { gateway_ip };
  return withoutEmpty({ ...values, ...gateway });
}
