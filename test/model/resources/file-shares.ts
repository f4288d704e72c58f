/** File shares and their access rules. */
import { add, childrenOf, entitiesOf, type Entity, ok, refused, type Resource } from '../model.ts';
import { deletes } from './deletion.ts';
import { patchTags, someTags, tagCommands, tagsOf, tagsPatch } from './tags.ts';

const path = '/cloud/v1/file_shares/{scope}';
const networks = ['10.0.0.1', '10.0.0.0/24', '192.168.7.0/28'];
const canonical = (network: string) => (network.includes('/') ? network : `${network}/32`);
const isOnHost = ({ fields }: Entity) => !['error', 'error_deleting'].includes(fields['status']);

export const fileShares: Resource = {
  kinds: [
    {
      name: 'share',
      list: path,
      createdAs: 'file_shares',
      observe: ({ name, size, status, tags, network_id, subnet_id, share_settings }, label) => ({
        name,
        size,
        status,
        tags: tagsOf(tags),
        network: label(network_id),
        subnet: label(subnet_id),
        squash: share_settings.root_squash ?? null,
      }),
      usage: ({ fields }) => ({ sfs_count: 1, sfs_size: fields['size'] }),
      host: {
        folder: 'fileShare',
        observe: ({ sizeGib, rootSquash }) => ({ sizeGib, rootSquash }),
        expected: ({ fields }) =>
          fields['status'] === 'error' ? null : { sizeGib: fields['size'], rootSquash: fields['squash'] ?? false },
      },
    },
    {
      name: 'rule',
      list: `${path}/{parent}/access_rule`,
      parent: 'share',
      observe: ({ access_level, access_to, state }) => ({ access_level, access_to, state }),
    },
  ],
  commands: [
    {
      name: 'create share',
      weight: 3,
      creates: 'share',
      method: 'POST',
      path,
      body(choice) {
        const subnet = choice.random.maybe(entitiesOf(choice.model, 'subnet'));
        if (!subnet) return null;
        const size = 1 + choice.random.int(4);
        return {
          name: choice.label,
          protocol: 'NFS',
          size,
          network: { network_id: subnet.fields['network'], subnet_id: `@${subnet.label}` },
          tags: someTags(choice),
        };
      },
      expect(model, _, step) {
        const { name, size, tags, network } = step.body!;
        const place = { network: network.network_id, subnet: network.subnet_id };
        const fields = { name, size, tags: { ...tags }, ...place, squash: null };
        add(model, 'share', step, { ...fields, status: 'available' });
        return ok;
      },
      fault: {
        resource: 'file_share',
        operation: 'apply',
        expect: (model, _, step) => void (model.entities[step.label!]!.fields['status'] = 'error'),
      },
    },
    {
      name: 'extend share',
      on: 'share',
      weight: 2,
      method: 'POST',
      path: `${path}/{on}/extend`,
      body: ({ entity, random }) => ({ size: Math.max(1, entity.fields['size'] + random.int(5) - 1) }),
      expect(_model, entity, { body }) {
        const { fields } = entity;
        if (!isOnHost(entity)) return refused(409, 'Conflict');
        if (body!['size'] < fields['size']) return refused(400);
        if (body!['size'] > fields['size']) Object.assign(fields, { size: body!['size'], status: 'available' });
        return ok;
      },
    },
    {
      name: 'update share',
      on: 'share',
      weight: 2,
      method: 'PATCH',
      path: '/cloud/v3/file_shares/{scope}/{on}',
      body(choice) {
        const { random } = choice;
        const squash = random.chance(0.3) && { share_settings: { root_squash: random.chance(0.5) } };
        return { name: `share ${random.int(5)}`, tags: tagsPatch(choice), ...squash };
      },
      expect(_model, entity, { body }) {
        const { fields } = entity;
        const squash = body!['share_settings']?.root_squash;
        if (squash !== undefined && squash !== (fields['squash'] ?? false)) {
          if (!isOnHost(entity)) return refused(409, 'Conflict');
          fields['status'] = 'available';
        }
        if (squash !== undefined) fields['squash'] = squash;
        fields['name'] = body!['name'];
        patchTags(fields, body!['tags']);
        return ok;
      },
    },
    ...tagCommands('share', `${path}/{on}`),
    deletes('share', path),
    {
      name: 'create access rule',
      on: 'share',
      creates: 'rule',
      method: 'POST',
      path: `${path}/{on}/access_rule`,
      body: ({ random }) => ({ ip_address: random.pick(networks), access_mode: random.pick(['ro', 'rw']) }),
      expect(model, entity, step) {
        const { ip_address, access_mode } = step.body!;
        if (!isOnHost(entity)) return refused(409, 'Conflict');
        const same = ({ fields }: Entity) => canonical(fields['access_to']) === canonical(ip_address);
        if (childrenOf(model, entity.label).some(same)) return refused(409, 'Conflict');
        const fields = { access_level: access_mode, access_to: ip_address, state: 'active' };
        add(model, 'rule', step, fields, entity.label);
        return ok;
      },
    },
    // The rule exists until the host denies access, and a second deletion has nothing to add.
    { ...deletes('rule', `${path}/{parent}/access_rule`), joins: true },
  ],
};
