import { Field } from '../ui/form/field.tsx';
import { RowsField } from '../ui/form/rows-field.tsx';
import type { Form } from '../ui/form/use-form.ts';

/** The fields that creation and edit of a subnet share. `no_gateway` is a field of the form only: the API has null. */
export function AddressFields({ form, gatewayHelp }: { form: Form; gatewayHelp: string }) {
  const hasNoGateway = form.get('no_gateway') === true;
  return (
    <>
      <Field form={form} path="gateway_ip" label="Gateway" help={gatewayHelp} disabled={hasNoGateway} />
      <div className="field check">
        <input
          id="no-gateway"
          type="checkbox"
          checked={hasNoGateway}
          onChange={(event) => form.set('no_gateway', event.target.checked)}
        />
        <label htmlFor="no-gateway">No gateway</label>
      </div>
      <Field form={form} path="enable_dhcp" label="DHCP" help="" />
      <RowsField
        form={form}
        path="dns_nameservers"
        label="DNS servers"
        help="Addresses of at most 16 servers."
        columns={[{ label: 'DNS server', placeholder: '1.1.1.1' }]}
      />
      <RowsField
        form={form}
        path="host_routes"
        label="Static routes"
        help="Networks that are reached by another router than the gateway."
        columns={[
          { key: 'destination', label: 'Destination', placeholder: '10.1.0.0/16' },
          { key: 'nexthop', label: 'Router', placeholder: '10.0.0.2' },
        ]}
      />
    </>
  );
}
