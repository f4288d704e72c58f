/** Networks and subnets: rows that other resources refer to. */
import { add, childrenOf, entitiesOf, isUsed, ok, refused, remove, type Resource } from '../model.ts';
import { patchTags, someTags, tagCommands, tagsOf, tagsPatch } from './tags.ts';

const networks = '/cloud/v1/networks/{scope}';
const subnets = '/cloud/v1/subnets/{scope}';

export const networksAndSubnets: Resource = {
  kinds: [
    {
      name: 'network',
      list: networks,
      createdAs: 'networks',
      observe: ({ name, tags, type }) => ({ name, type, tags: tagsOf(tags) }),
      usage: () => ({ network_count: 1 }),
    },
    {
      name: 'subnet',
      list: subnets,
      createdAs: 'subnets',
      observe: ({ name, cidr, enable_dhcp, gateway_ip, network_id, tags }, label) => ({
        name,
        cidr,
        dhcp: enable_dhcp,
        gateway: gateway_ip,
        network: label(network_id),
        tags: tagsOf(tags),
      }),
      usage: () => ({ subnet_count: 1 }),
    },
  ],
  commands: [
    {
      name: 'create network',
      creates: 'network',
      method: 'POST',
      path: networks,
      body: (choice) => ({ name: choice.label, type: choice.random.pick(['vlan', 'vxlan']), tags: someTags(choice) }),
      expect(model, _, step) {
        add(model, 'network', step, { ...step.body!, tags: { ...step.body!['tags'] } });
        return ok;
      },
    },
    {
      name: 'update network',
      on: 'network',
      method: 'PATCH',
      path: '/cloud/v2/networks/{scope}/{on}',
      body: (choice) => ({ name: `network ${choice.random.int(5)}`, tags: tagsPatch(choice) }),
      expect(_model, { fields }, { body }) {
        fields['name'] = body!['name'];
        patchTags(fields, body!['tags']);
        return ok;
      },
    },
    ...tagCommands('network', `${networks}/{on}`),
    {
      name: 'delete network',
      on: 'network',
      method: 'DELETE',
      path: `${networks}/{on}`,
      expect(model, { label }) {
        if (childrenOf(model, label).length > 0 || isUsed(model, label)) return refused(409, 'InUse');
        remove(model, label);
        return ok;
      },
    },
    {
      name: 'create subnet',
      creates: 'subnet',
      method: 'POST',
      path: subnets,
      body(choice) {
        const network = choice.random.maybe(entitiesOf(choice.model, 'network'));
        if (!network) return null;
        const cidr = `10.${choice.random.int(4)}.0.0/${choice.random.pick([16, 24])}`;
        return { name: choice.label, network_id: `@${network.label}`, cidr, tags: someTags(choice) };
      },
      expect(model, _, step) {
        const { name, network_id, cidr, tags } = step.body!;
        const block = (text: string) => text.split('.').slice(0, 2).join('.');
        const parent = network_id.slice(1);
        const overlaps = childrenOf(model, parent).some(({ fields }) => block(fields['cidr']) === block(cidr));
        if (overlaps) return refused(409, 'Conflict');
        const gateway = `${block(cidr)}.0.1`;
        add(model, 'subnet', step, { name, cidr, network: network_id, dhcp: true, gateway, tags: { ...tags } }, parent);
        return ok;
      },
    },
    {
      name: 'update subnet',
      on: 'subnet',
      method: 'PATCH',
      path: `${subnets}/{on}`,
      body: (choice) => ({
        name: `subnet ${choice.random.int(5)}`,
        enable_dhcp: choice.random.chance(0.5),
        tags: tagsPatch(choice),
      }),
      expect(_model, { fields }, { body }) {
        Object.assign(fields, { name: body!['name'], dhcp: body!['enable_dhcp'] });
        patchTags(fields, body!['tags']);
        return ok;
      },
    },
    ...tagCommands('subnet', `${subnets}/{on}`),
    {
      name: 'delete subnet',
      on: 'subnet',
      method: 'DELETE',
      path: `${subnets}/{on}`,
      expect(model, { label }) {
        if (isUsed(model, label)) return refused(409, 'InUse');
        remove(model, label);
        return ok;
      },
    },
  ],
};
