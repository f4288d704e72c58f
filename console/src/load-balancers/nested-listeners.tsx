import type { Form, Values } from '../ui/form/use-form.ts';
import { FIELDSETS, useRows } from '../ui/form/use-rows.ts';
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

/** Another listener of a new load balancer, with its pool. */
export function newListener(others: readonly Values[]): Values {
  const number = unusedNumber(others);
  const protocol_port = others.length === 0 ? 80 : '';
  return { name: `listener-${number}`, protocol: 'HTTP', protocol_port, pools: [newPool(number, 'HTTP')] };
}

/** The first number, from 1, that no listener and no pool has in its name. */
function unusedNumber(listeners: readonly Values[]): number {
  const names = listeners.flatMap(({ name, pools }) => [
    name,
    ...(pools as readonly Values[]).map((pool) => pool['name']),
  ]);
  let number = 1;
  while (names.includes(`listener-${number}`) || names.includes(`pool-${number}`)) number += 1;
  return number;
}

/** The listeners of a new load balancer, each with at most one pool. */
export function NestedListeners({ form }: { form: Form }) {
  const listeners = (form.get('listeners') as readonly Values[] | undefined) ?? [];
  const { list, add, remove } = useRows({
    rows: listeners,
    set: (next) => form.set('listeners', next),
    newRow: newListener(listeners),
    selector: FIELDSETS,
  });
  return (
    <div className="form" ref={list}>
      {listeners.map((_listener, index) => (
        <NestedListener key={index} form={form} index={index} listeners={listeners} remove={() => remove(index)} />
      ))}
      <div>
        <button type="button" className="button small" onClick={add}>
          <Icon name="plus" /> Add listener
        </button>
      </div>
    </div>
  );
}

interface NestedListenerProps {
  readonly form: Form;
  readonly index: number;
  readonly listeners: readonly Values[];
  readonly remove: () => void;
}

function NestedListener({ form, index, listeners, remove }: NestedListenerProps) {
  const listener = listeners[index]!;
  const others = listeners.filter((_, at) => at !== index);
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
          <MemberTable
            form={form}
            path={`${path}.pools.0.members`}
            isMonitored={form.get(`${path}.pools.0.healthmonitor`) !== undefined}
          />
        </>
      )}
      <div className="row">
        {hasPool(protocol) && (
          <button
            type="button"
            className="button small"
            onClick={() => {
              const [first = 'HTTP'] = poolProtocols(protocol);
              form.set(`${path}.pools`, pools.length > 0 ? [] : [newPool(unusedNumber(others), first)]);
            }}
          >
            {pools.length > 0 ? 'Without a pool' : 'Add a pool'}
          </button>
        )}
        <button type="button" className="button small" onClick={remove}>
          <Icon name="trash" /> Remove listener {index + 1}
        </button>
      </div>
    </fieldset>
  );
}
