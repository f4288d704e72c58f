/** L7 policies of listeners and their rules, which lock with the load balancer. */
import { add, entitiesOf, ok, type Resource } from '../model.ts';
import { deletes } from './deletion.ts';

const path = '/cloud/v1/l7policies/{scope}';

export const l7Policies: Resource = {
  kinds: [
    {
      name: 'l7policy',
      list: path,
      createdAs: 'l7polices',
      observe: ({ name, action, provisioning_status, listener_id }, label) => ({
        name,
        action,
        status: provisioning_status,
        listener: label(listener_id),
      }),
      // Only the parent names the listener: a field would count as its default pool.
      expected: ({ fields, parent }) => ({ ...fields, listener: `@${parent}` }),
    },
    {
      name: 'l7rule',
      list: `${path}/{parent}/rules`,
      parent: 'l7policy',
      createdAs: 'l7rules',
      observe: ({ type, compare_type, value, invert }) => ({ type, compare_type, value, invert }),
    },
  ],
  commands: [
    {
      name: 'create L7 policy',
      weight: 4,
      creates: 'l7policy',
      method: 'POST',
      path,
      body({ model, random, label }) {
        const listener = random.maybe(entitiesOf(model, 'listener'));
        return listener ? { name: label, listener_id: `@${listener.label}`, action: 'REJECT' } : null;
      },
      expect(model, _, step) {
        const { name, listener_id, action } = step.body!;
        add(model, 'l7policy', step, { name, action, status: 'ACTIVE' }, listener_id.slice(1));
        return ok;
      },
    },
    {
      name: 'update L7 policy',
      on: 'l7policy',
      method: 'PATCH',
      path: `${path}/{on}`,
      body: ({ random }) => ({ name: `policy ${random.int(5)}`, action: 'REJECT' }),
      expect(_model, { fields }, { body }) {
        fields['name'] = body!['name'];
        return ok;
      },
    },
    deletes('l7policy', path),
    {
      name: 'create L7 rule',
      weight: 4,
      on: 'l7policy',
      creates: 'l7rule',
      method: 'POST',
      path: `${path}/{on}/rules`,
      body: ({ random }) => ({ type: 'PATH', compare_type: 'STARTS_WITH', value: `/path${random.int(5)}` }),
      expect(model, { label }, step) {
        const { type, compare_type, value } = step.body!;
        add(model, 'l7rule', step, { type, compare_type, value, invert: false }, label);
        return ok;
      },
    },
    {
      name: 'update L7 rule',
      on: 'l7rule',
      method: 'PUT',
      path: `${path}/{parent}/rules/{on}`,
      body: ({ random }) => ({ value: `/path${random.int(5)}`, invert: random.chance(0.5) }),
      expect(_model, { fields }, { body }) {
        Object.assign(fields, { value: body!['value'], invert: body!['invert'] });
        return ok;
      },
    },
    deletes('l7rule', `${path}/{parent}/rules`),
  ],
};
