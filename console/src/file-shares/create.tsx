import { useQuery } from '@tanstack/react-query';
import standardSchema from 'schema:CreateStandardFileShare';
import vastSchema from 'schema:CreateVastFileShare';
import { useState } from 'react';
import { networksQuery, subnetsQuery } from '../networks/data.ts';
import { NoNetworkYet } from '../networks/none-yet.tsx';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import { NoneYet } from '../ui/form/none-yet.tsx';
import { SelectField } from '../ui/form/select-field.tsx';
import type { Form } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { PricePreview } from '../ui/price.tsx';
import { regionsQuery, scopeParams, useScope } from '../ui/scope.tsx';
import { AccessFields } from './access-fields.tsx';
import { KIND, newSharePrice } from './data.ts';

const PATH = '/cloud/v1/file_shares/{project_id}/{region_id}';
type Type = 'standard' | 'vast';

export function CreateFileShare() {
  const scope = useScope();
  const [type, setType] = useState<Type>('standard');
  const networksRead = useQuery(networksQuery(scope));
  const networks = networksRead.data?.results ?? [];
  const defaultNetwork = (networks.find((network) => network.default) ?? networks[0])?.id;
  const form = useRequestForm({
    call: { operationId: 'createFileShare', method: 'POST', path: PATH, params: scopeParams(scope) },
    schema: type === 'standard' ? standardSchema : vastSchema,
    initial: { protocol: 'NFS', name: '', size: 10, network: {}, access: [] },
    toBody: (values) => toBody(values, type, defaultNetwork),
    queryKind: KIND,
    sent: ({ name }) => ({
      busy: `Creating file share ${String(name)}`,
      done: `Created file share ${String(name)}`,
      link: { to: scope.path('file-shares'), text: 'File shares' },
      to: scope.path('file-shares'),
    }),
  });
  return (
    <FormDialog
      title="Create file share"
      form={form}
      submitLabel="Create file share"
      disabledReason={networksRead.isLoading ? 'Loading the networks' : null}
    >
      <Field form={form} path="name" label="Name" />
      <div className="field-row">
        <Field form={form} path="size" label="Size (GiB)" help="The share can be extended later, not shrunk." />
        <TypeChoice type={type} setType={setType} />
      </div>
      {type === 'standard' && (
        <>
          <NetworkFields form={form} networks={networksRead.data?.results} defaultNetwork={defaultNetwork} />
          <AccessFields form={form} />
        </>
      )}
      <Field
        form={form}
        path="share_settings.root_squash"
        label="Map root of clients to an unprivileged user"
        help=""
      />
      <Field form={form} path="tags" label="Tags" help="" />
      <PricePreview kind="file_shares" body={newSharePrice(form.get('size'), type)} />
    </FormDialog>
  );
}

/** The request of the form. Fields that the type does not have are omitted, and no checkbox that was not touched is sent. */
function toBody(values: Readonly<Record<string, unknown>>, type: Type, defaultNetwork: string | undefined) {
  const { network, access, name, ...rest } = values as Record<string, object> & { access: readonly object[] };
  const common = Object.fromEntries(
    Object.entries({ name, ...rest }).filter(([, value]) => value !== undefined && (value as unknown) !== ''),
  );
  if (type === 'vast') return { ...common, type_name: type };
  const chosen = Object.fromEntries(
    Object.entries(network ?? {}).filter(([, value]) => value !== '' && value !== undefined),
  );
  return {
    ...common,
    network: { ...(defaultNetwork === undefined ? {} : { network_id: defaultNetwork }), ...chosen },
    ...(access.length > 0 ? { access } : {}),
  };
}

/** Only where the region offers more than one type. */
function TypeChoice({ type, setType }: { type: Type; setType: (type: Type) => void }) {
  const { region } = useScope();
  const offered = useQuery(regionsQuery).data?.results.find(({ id }) => id === region)?.file_share_types ?? [
    'standard',
  ];
  if (offered.length < 2) return null;
  return (
    <SelectField
      label="Type"
      value={type}
      set={setType}
      texts={Object.fromEntries(offered.map((each) => [each, each])) as Record<Type, string>}
      help="Standard shares have a network and access rules."
    />
  );
}

interface NetworkFieldsProps {
  readonly form: Form;
  /** Undefined while they load. */
  readonly networks: readonly { readonly id: string; readonly name: string }[] | undefined;
  readonly defaultNetwork: string | undefined;
}

function NetworkFields({ form, networks, defaultNetwork }: NetworkFieldsProps) {
  const scope = useScope();
  const chosen = (form.get('network.network_id') as string | undefined) || defaultNetwork;
  const subnetsRead = useQuery(subnetsQuery(scope)).data?.results;
  const subnets = subnetsRead?.filter((subnet) => subnet.network_id === chosen) ?? [];
  const hasNoSubnet = chosen !== undefined && subnetsRead !== undefined && subnets.length === 0;
  // The default is shown as chosen, but is not a change of the form.
  const shown: Form = {
    ...form,
    get: (path) => (path === 'network.network_id' ? chosen : form.get(path)),
    set: (path, value) => {
      form.set(path, value);
      if (path === 'network.network_id') form.set('network.subnet_id', undefined);
    },
  };
  return (
    <div className="field-row">
      <Field
        form={shown}
        path="network.network_id"
        label="Network"
        help={networks?.length === 0 && <NoNetworkYet />}
        choices={(networks ?? []).map(({ id, name }) => ({ value: id, label: name }))}
      />
      <Field
        form={shown}
        path="network.subnet_id"
        label="Subnet"
        help={
          hasNoSubnet ? (
            <NoneYet
              text="The network has no subnet yet."
              to={scope.path('networks', chosen, 'subnets', 'new')}
              action="Create a subnet"
            />
          ) : (
            'By default the first one of the network.'
          )
        }
        choices={subnets.map(({ id, name, cidr }) => ({ value: id, label: `${name} (${cidr})` }))}
      />
    </div>
  );
}
