import { useEffect } from 'react';
import { FieldErrors } from '../ui/form/field.tsx';
import type { Form, Values } from '../ui/form/use-form.ts';
import { Icon } from '../ui/icons.tsx';
import { ListenerFields } from './listeners/fields.tsx';
import { hasPool, poolProtocols } from './listeners/protocols.ts';
import { PoolFields } from './pools/fields.tsx';
import { MemberTable } from './pools/member-table.tsx';
import './load-balancers.css';

const newPool = (number: number, protocol: string) => ({
  name: `pool-${number}`,
  protocol,
  lb_algorithm: 'ROUND_ROBIN',
  members: [],
});

/** A listener of a new load balancer with its pool. `number` is from 1. */
export const newListener = (number: number): Values => ({
  name: `listener-${number}`,
  protocol: 'HTTP',
  protocol_port: number === 1 ? 80 : '',
  pools: [newPool(number, 'HTTP')],
});

/** The listeners of a new load balancer, each with at most one pool. */
export function NestedListeners({ form }: { form: Form }) {
  const listeners = (form.get('listeners') as readonly Values[] | undefined) ?? [];
  useEffect(() => form.register('listeners'));
  const set = (next: readonly Values[]) => form.set('listeners', next);
  return (
    <>
      {listeners.map((listener, index) => (
        <NestedListener
          key={index}
          form={form}
          index={index}
          listener={listener}
          remove={() => set(listeners.filter((_, at) => at !== index))}
        />
      ))}
      <div>
        <button
          type="button"
          className="button small"
          onClick={() => set([...listeners, newListener(listeners.length + 1)])}
        >
          <Icon name="plus" /> Add listener
        </button>
      </div>
    </>
  );
}

interface NestedListenerProps {
  readonly form: Form;
  readonly index: number;
  readonly listener: Values;
  readonly remove: () => void;
}

function NestedListener({ form, index, listener, remove }: NestedListenerProps) {
  const path = `listeners.${index}`;
  const protocol = String(listener['protocol']);
  const pools = listener['pools'] as readonly Values[];
  // A pool follows the protocol of its listener while it cannot be behind it.
  const inner: Form = {
    ...form,
    set(changed, value) {
      form.set(changed, value);
      if (changed !== `${path}.protocol`) return;
      const allowed = poolProtocols(String(value));
      if (!hasPool(value)) form.set(`${path}.pools`, []);
      else if (pools[0] && !allowed.includes(String(pools[0]['protocol'])))
        form.set(`${path}.pools.0.protocol`, allowed.includes(String(value)) ? value : allowed[0]);
    },
  };
  return (
    <fieldset className="group">
      <legend>Listener {index + 1}</legend>
      <ListenerFields form={inner} prefix={`${path}.`} />
      {pools.length > 0 && (
        <>
          <PoolFields form={form} prefix={`${path}.pools.0.`} listenerProtocol={protocol} />
          <MemberTable form={form} path={`${path}.pools.0.members`} />
        </>
      )}
      <div className="row">
        {hasPool(protocol) && (
          <button
            type="button"
            className="button small"
            onClick={() => {
              const [first = 'HTTP'] = poolProtocols(protocol);
              form.set(`${path}.pools`, pools.length > 0 ? [] : [newPool(index + 1, first)]);
            }}
          >
            {pools.length > 0 ? 'Without a pool' : 'Add a pool'}
          </button>
        )}
        <button type="button" className="button small" onClick={remove}>
          <Icon name="trash" /> Remove listener {index + 1}
        </button>
      </div>
      <FieldErrors id={`${path}-error`} errors={pools.length > 0 ? [] : form.errorsAt(`${path}.pools`)} />
    </fieldset>
  );
}
