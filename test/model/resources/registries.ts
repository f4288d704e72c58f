/** Registries and their users. */
import { add, childrenOf, ok, refused, type Resource } from '../model.ts';
import { deletes } from './deletion.ts';

const path = '/cloud/v1/registries/{scope}';

export const registries: Resource = {
  kinds: [
    {
      name: 'registry',
      list: path,
      hasIntegerIds: true,
      observe: ({ name, storage_limit }) => ({ name, limit: storage_limit }),
      usage: ({ fields }) => ({ registry_count: 1, registry_storage: fields['limit'] }),
    },
    {
      name: 'user',
      list: `${path}/{parent}/users`,
      parent: 'registry',
      hasIntegerIds: true,
      observe: ({ name, duration, read_only }) => ({ name, duration, readOnly: read_only }),
    },
  ],
  commands: [
    {
      name: 'create registry',
      creates: 'registry',
      method: 'POST',
      path,
      body: ({ label, random }) => ({ name: label, storage_limit: 1 + random.int(5) }),
      expect(model, _, step) {
        add(model, 'registry', step, { name: step.body!['name'], limit: step.body!['storage_limit'] });
        return ok;
      },
    },
    {
      name: 'resize registry',
      on: 'registry',
      method: 'PATCH',
      path: `${path}/{on}/resize`,
      body: ({ random }) => ({ storage_limit: 1 + random.int(6) }),
      expect(_model, { fields }, { body }) {
        fields['limit'] = body!['storage_limit'];
        return ok;
      },
    },
    { ...deletes('registry', path), joins: true },
    {
      name: 'create user',
      creates: 'user',
      on: 'registry',
      method: 'POST',
      path: `${path}/{on}/users`,
      body: ({ model, entity, label, random }) => {
        const taken = random.chance(0.2) && random.maybe(childrenOf(model, entity.label));
        return { name: taken ? taken.fields['name'] : label, duration: -1, read_only: random.chance(0.5) };
      },
      expect(model, entity, step) {
        const { name, duration, read_only } = step.body!;
        const isTaken = childrenOf(model, entity.label).some(({ fields }) => fields['name'] === name);
        if (isTaken) return refused(409, 'NameTaken');
        add(model, 'user', step, { name, duration, readOnly: read_only }, entity.label);
        return ok;
      },
    },
    {
      name: 'update user',
      on: 'user',
      method: 'PATCH',
      path: `${path}/{parent}/users/{on}`,
      body: ({ random }) => ({ duration: -1, read_only: random.chance(0.5) }),
      expect(_model, { fields }, { body }) {
        fields['readOnly'] = body!['read_only'];
        return ok;
      },
    },
    deletes('user', `${path}/{parent}/users`),
  ],
};
