import { useQuery } from '@tanstack/react-query';
import schema from 'schema:CreateLoadBalancer';
import { networksQuery, subnetsQuery } from '../networks/data.ts';
import { Field } from '../ui/form/field.tsx';
import { FormDialog } from '../ui/form/form-dialog.tsx';
import type { Form, Values } from '../ui/form/use-form.ts';
import { useRequestForm } from '../ui/form/use-request-form.ts';
import { scopeParams, useScope } from '../ui/scope.tsx';
import { BALANCERS, flavorsQuery, KIND } from './data.ts';
import { fittingListener } from './fitting.ts';
import { FlavorField } from './flavor-field.tsx';
import { newListener, NestedListeners } from './nested-listeners.tsx';
import { compact } from './values.ts';

/** A load balancer with its listeners, pools and members: one request, which succeeds or fails as a whole. */
export function CreateLoadBalancer() {
  const scope = useScope();
  // The request names the flavor that the form shows, also an unchanged one: without it the code for Terraform would plan
  // to remove the flavor of the response.
  const flavor = useQuery(flavorsQuery(scope)).data?.results[0]?.flavor_name;
  const form = useRequestForm({
    call: { operationId: 'createLoadBalancer', method: 'POST', path: BALANCERS, params: scopeParams(scope) },
    schema,
    initial: { name: '', listeners: [newListener([])] },
    toBody: ({ listeners, ...values }) =>
      compact({
        ...values,
        flavor: values['flavor'] ?? flavor,
        listeners: (listeners as readonly Values[]).map(fittingListener),
      }),
    queryKind: KIND,
    sent: ({ name }) => ({
      busy: `Creating load balancer ${String(name)}`,
      done: `Created load balancer ${String(name)}`,
      link: { to: scope.path('load-balancers'), text: 'Load balancers' },
      to: scope.path('load-balancers'),
    }),
  });
  return (
    <FormDialog title="Create load balancer" form={form} submitLabel="Create load balancer">
      <Field form={form} path="name" label="Name" />
      <FlavorField form={form} />
      <NestedListeners form={form} />
      <details className="more">
        <summary>Network</summary>
        <div className="form">
          <NetworkFields form={form} />
        </div>
      </details>
      <Field form={form} path="tags" label="Tags" help="" />
    </FormDialog>
  );
}

function NetworkFields({ form }: { form: Form }) {
  const scope = useScope();
  const networks = useQuery(networksQuery(scope)).data?.results ?? [];
  const subnets = useQuery(subnetsQuery(scope)).data?.results ?? [];
  const chosen = form.get('vip_network_id');
  const withSubnet: Form = {
    ...form,
    set: (path, value) => {
      form.set(path, value);
      form.set('vip_subnet_id', undefined);
    },
  };
  return (
    <div className="field-row">
      <Field form={form} path="vip_ip_family" label="IP version" help="By default ipv4." />
      <Field
        form={withSubnet}
        path="vip_network_id"
        label="Network"
        help="Shown with the load balancer; its address is assigned by the region."
        choices={networks.map(({ id, name }) => ({ value: id, label: name }))}
      />
      {chosen !== undefined && (
        <Field
          form={form}
          path="vip_subnet_id"
          label="Subnet"
          help="By default the first one of the network."
          choices={subnets
            .filter(({ network_id }) => network_id === chosen)
            .map(({ id, name, cidr }) => ({ value: id, label: `${name} (${cidr})` }))}
        />
      )}
    </div>
  );
}
