/** Resources without a host: projects, secrets, API keys and pull secrets. */
import { add, type Choice, entitiesOf, type Model, ok, refused, type Resource } from '../model.ts';
import { deletes } from './deletion.ts';

const keys = '/cloud/v1/caas/keys/{scope}';
const pullSecrets = '/cloud/v1/caas/secrets/{scope}';

/** A new name, or now and then one that is taken. */
function someName({ model, random, label }: Choice, kind: string): string {
  const other = random.chance(0.15) && random.maybe(entitiesOf(model, kind));
  return other ? other.fields['name'] : label;
}

const isTaken = (model: Model, kind: string, name: string) =>
  entitiesOf(model, kind).some(({ fields }) => fields['name'] === name);

const projects: Resource = {
  kinds: [
    {
      name: 'project',
      list: '/cloud/v1/projects',
      hasIntegerIds: true,
      // The model has no default project.
      observe: ({ name, description, is_default }) => (is_default ? null : { name, description }),
      usage: () => ({ project_count: 1 }),
    },
  ],
  commands: [
    {
      name: 'create project',
      creates: 'project',
      method: 'POST',
      path: '/cloud/v1/projects',
      body: (choice) => ({ name: someName(choice, 'project') }),
      expect(model, _, step) {
        const { name } = step.body!;
        if (isTaken(model, 'project', name)) return refused(409, 'NameTaken');
        add(model, 'project', step, { name, description: null });
        return ok;
      },
    },
    {
      name: 'update project',
      on: 'project',
      method: 'PATCH',
      path: '/cloud/v1/projects/{on}',
      body: ({ random }) => ({ description: `text ${random.int(5)}` }),
      expect(_model, { fields }, { body }) {
        fields['description'] = body!['description'];
        return ok;
      },
    },
    deletes('project', '/cloud/v1/projects'),
  ],
};

const secrets: Resource = {
  kinds: [
    {
      name: 'secret',
      list: '/cloud/v1/secrets/{scope}',
      createdAs: 'secrets',
      observe: ({ name, secret_type }) => ({ name, type: secret_type }),
      usage: () => ({ secret_count: 1 }),
    },
  ],
  commands: [
    {
      name: 'create secret',
      creates: 'secret',
      method: 'POST',
      path: '/cloud/v1/secrets/{scope}',
      body: ({ label }) => ({
        name: label,
        secret_type: 'opaque',
        payload: 'AAAA',
        payload_content_type: 'text/plain',
        payload_content_encoding: 'base64',
      }),
      expect(model, _, step) {
        add(model, 'secret', step, { name: step.body!['name'], type: 'opaque' });
        return ok;
      },
    },
    deletes('secret', '/cloud/v1/secrets/{scope}'),
  ],
};

const apiKeys: Resource = {
  kinds: [
    {
      name: 'key',
      list: keys,
      id: ({ name }) => name,
      observe: ({ name, status, description, containers }) => ({
        name,
        status,
        description,
        containers: containers.map((container: { name: string }) => container.name),
      }),
    },
  ],
  commands: [
    {
      name: 'create key',
      creates: 'key',
      method: 'POST',
      path: keys,
      body: (choice) => ({ name: someName(choice, 'key'), containers: [{ name: 'web', namespace: 'default' }] }),
      expect(model, _, step) {
        const { name } = step.body!;
        if (isTaken(model, 'key', name)) return refused(409, 'NameTaken');
        add(model, 'key', step, { name, status: 'active', description: '', containers: ['web'] });
        return ok;
      },
    },
    {
      name: 'update key',
      on: 'key',
      method: 'PATCH',
      path: `${keys}/{on}`,
      body: ({ random }) => ({
        description: `text ${random.int(5)}`,
        ...(random.chance(0.5) && { is_disabled: random.chance(0.5) }),
        ...(random.chance(0.3) && { containers: null }),
      }),
      expect(_model, { fields }, { body }) {
        fields['description'] = body!['description'];
        if (body!['is_disabled'] !== undefined) fields['status'] = body!['is_disabled'] ? 'disabled' : 'active';
        if (body!['containers'] === null) fields['containers'] = [];
        return ok;
      },
    },
    deletes('key', keys),
  ],
};

const logins: Resource = {
  kinds: [
    {
      name: 'login',
      list: pullSecrets,
      id: ({ name }) => name,
      observe: ({ name, registry, login }) => ({ name, registry, login }),
    },
  ],
  commands: [
    {
      name: 'create login',
      creates: 'login',
      method: 'POST',
      path: pullSecrets,
      body: (choice) => ({ name: someName(choice, 'login'), registry: 'ghcr.io', login: 'ci', password: 'secret' }),
      expect(model, _, step) {
        const { name, registry, login } = step.body!;
        if (isTaken(model, 'login', name)) return refused(409, 'NameTaken');
        add(model, 'login', step, { name, registry, login });
        return ok;
      },
    },
    {
      name: 'update login',
      on: 'login',
      method: 'PATCH',
      path: `${pullSecrets}/{on}`,
      body: ({ random }) => ({ login: `user${random.int(5)}` }),
      expect(_model, { fields }, { body }) {
        fields['login'] = body!['login'];
        return ok;
      },
    },
    deletes('login', pullSecrets),
  ],
};

export const records: Resource[] = [projects, secrets, apiKeys, logins];
