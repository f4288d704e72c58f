/** Load balancers, listeners, pools and members, which lock and are configured together. */
import {
  add,
  childrenOf,
  type Choice,
  type Command,
  entitiesOf,
  type Fields,
  isUsed,
  type Kind,
  type Model,
  ok,
  refused,
  remove,
  type Resource,
} from '../model.ts';
import { deletes } from './deletion.ts';
import { patchTags, someTags, tagsOf, tagsPatch } from './tags.ts';

const balancers = '/cloud/v1/loadbalancers/{scope}';
const listeners = '/cloud/v1/lblisteners/{scope}';
const pools = '/cloud/v1/lbpools/{scope}';

interface Member {
  address: string;
  protocol_port: number;
  weight: number;
}

const partsOf = (model: Model, label: string, kind: string) =>
  childrenOf(model, label).filter((child) => child.kind === kind);
const endpoint = ({ address, protocol_port }: Member) => `${address}:${protocol_port}`;
const byEndpoint = (members: Member[]) => [...members].sort((a, b) => (endpoint(a) < endpoint(b) ? -1 : 1));
const someMember = ({ random }: Pick<Choice, 'random'>): Member => ({
  address: `10.9.0.${1 + random.int(4)}`,
  protocol_port: 8080,
  weight: 1 + random.int(3),
});
/** Members with different endpoints. */
const someMembers = (choice: Pick<Choice, 'random'>): Member[] => {
  const made = Array.from({ length: choice.random.int(4) }, () => someMember(choice));
  return [...new Map(made.map((member) => [endpoint(member), member])).values()];
};

const balancerKind: Kind = {
  name: 'balancer',
  list: balancers,
  createdAs: 'loadbalancers',
  observe: ({ name, admin_state_up, provisioning_status, tags_v2, vrrp_ips }, label) => ({
    name,
    on: admin_state_up,
    status: provisioning_status,
    tags: tagsOf(tags_v2),
    subnet: label(vrrp_ips[0].subnet_id),
  }),
  // The API does not show the network, which it cannot delete meanwhile.
  expected: ({ fields: { name, on, status, tags, subnet } }) => ({ name, on, status, tags, subnet }),
  usage: () => ({ loadbalancer_count: 1 }),
  host: {
    folder: 'loadBalancer',
    observe: ({ enabled, listeners: all, pools: ofHost }) => ({
      enabled,
      ports: all.map(({ port }: Fields) => port).sort(),
      members: ofHost.flatMap(({ members }: Fields) => members.map(({ address }: Fields) => address)).sort(),
    }),
    expected: ({ label, fields }, model) => ({
      enabled: fields['on'],
      ports: partsOf(model, label, 'listener')
        .map((listener) => listener.fields['port'])
        .sort(),
      members: partsOf(model, label, 'pool')
        .flatMap((pool) => pool.fields['members'].map(({ address }: Member) => address))
        .sort(),
    }),
  },
};

const listenerKind: Kind = {
  name: 'listener',
  list: listeners,
  createdAs: 'listeners',
  observe: ({ name, protocol, protocol_port, provisioning_status, connection_limit, load_balancer_id }, label) => ({
    name,
    protocol,
    port: protocol_port,
    status: provisioning_status,
    limit: connection_limit,
    balancer: label(load_balancer_id),
  }),
};

const poolKind: Kind = {
  name: 'pool',
  list: `${pools}?details=true`,
  createdAs: 'pools',
  observe: (
    { name, lb_algorithm, provisioning_status, members, healthmonitor, listeners: used, loadbalancers },
    label,
  ) => ({
    name,
    algorithm: lb_algorithm,
    status: provisioning_status,
    members: byEndpoint(
      members.map(({ address, protocol_port, weight }: Member) => ({ address, protocol_port, weight })),
    ),
    monitor: healthmonitor?.delay ?? null,
    listener: used[0] ? label(used[0].id) : null,
    balancer: label(loadbalancers[0].id),
  }),
};

const balancerCommands: Command[] = [
  {
    name: 'create balancer',
    weight: 2,
    creates: 'balancer',
    method: 'POST',
    path: balancers,
    body(choice) {
      const subnet = choice.random.maybe(entitiesOf(choice.model, 'subnet'));
      if (!subnet) return null;
      const place = { vip_network_id: subnet.fields['network'], vip_subnet_id: `@${subnet.label}` };
      return { name: choice.label, ...place, tags: someTags(choice) };
    },
    expect(model, _, step) {
      const { name, tags, vip_network_id: network, vip_subnet_id: subnet } = step.body!;
      add(model, 'balancer', step, { name, tags: { ...tags }, network, subnet, on: true, status: 'ACTIVE' });
      return ok;
    },
  },
  {
    name: 'update balancer',
    on: 'balancer',
    method: 'PATCH',
    path: '/cloud/v2/loadbalancers/{scope}/{on}',
    body: (choice) => ({
      name: `balancer ${choice.random.int(5)}`,
      tags: tagsPatch(choice),
      ...(choice.random.chance(0.4) && { admin_state_up: choice.random.chance(0.5) }),
    }),
    expect(_model, { fields }, { body }) {
      fields['name'] = body!['name'];
      fields['on'] = body!['admin_state_up'] ?? fields['on'];
      patchTags(fields, body!['tags']);
      return ok;
    },
  },
  deletes('balancer', balancers),
];

const listenerCommands: Command[] = [
  {
    name: 'create listener',
    weight: 4,
    creates: 'listener',
    method: 'POST',
    path: listeners,
    body({ model, random, label }) {
      const balancer = random.maybe(entitiesOf(model, 'balancer'));
      if (!balancer) return null;
      const port = 8000 + random.int(4);
      return { name: label, load_balancer_id: `@${balancer.label}`, protocol: 'HTTP', protocol_port: port };
    },
    expect(model, _, step) {
      const { name, load_balancer_id: balancer, protocol, protocol_port: port } = step.body!;
      const parent = balancer.slice(1);
      if (partsOf(model, parent, 'listener').some(({ fields }) => fields['port'] === port)) {
        return refused(409, 'Conflict');
      }
      add(model, 'listener', step, { name, protocol, port, status: 'ACTIVE', limit: 100_000, balancer }, parent);
      return ok;
    },
  },
  {
    name: 'update listener',
    on: 'listener',
    method: 'PATCH',
    path: '/cloud/v2/lblisteners/{scope}/{on}',
    body: ({ random }) => ({ name: `listener ${random.int(5)}`, connection_limit: 100 + random.int(3) }),
    expect(_model, { fields }, { body }) {
      Object.assign(fields, { name: body!['name'], limit: body!['connection_limit'] });
      return ok;
    },
  },
  {
    name: 'delete listener',
    on: 'listener',
    method: 'DELETE',
    path: `${listeners}/{on}`,
    expect(model, { label }) {
      for (const pool of entitiesOf(model, 'pool')) {
        if (pool.fields['listener'] === `@${label}`) pool.fields['listener'] = null;
      }
      remove(model, label);
      return ok;
    },
  },
];

const poolCommands: Command[] = [
  {
    name: 'create pool',
    weight: 2,
    creates: 'pool',
    method: 'POST',
    path: pools,
    body(choice) {
      const { model, random, label } = choice;
      const balancer = random.maybe(entitiesOf(model, 'balancer'));
      if (!balancer) return null;
      const listener = random.maybe(partsOf(model, balancer.label, 'listener'));
      const place = listener ? { listener_id: `@${listener.label}` } : { load_balancer_id: `@${balancer.label}` };
      return { name: label, ...place, protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', members: someMembers(choice) };
    },
    expect(model, _, step) {
      const { name, listener_id: listener = null, load_balancer_id, members } = step.body!;
      const balancer = load_balancer_id ?? model.entities[listener.slice(1)]!.fields['balancer'];
      if (listener !== null && isUsed(model, listener.slice(1))) return refused(409, 'Conflict');
      const fields = { name, algorithm: 'ROUND_ROBIN', status: 'ACTIVE', monitor: null, listener, balancer };
      add(model, 'pool', step, { ...fields, members: byEndpoint(members) }, balancer.slice(1));
      return ok;
    },
  },
  {
    name: 'update pool',
    on: 'pool',
    weight: 2,
    method: 'PATCH',
    path: '/cloud/v2/lbpools/{scope}/{on}',
    body: (choice) => ({
      name: `pool ${choice.random.int(5)}`,
      ...(choice.random.chance(0.6) && { members: someMembers(choice) }),
      ...(choice.random.chance(0.3) && { lb_algorithm: choice.random.pick(['ROUND_ROBIN', 'LEAST_CONNECTIONS']) }),
    }),
    expect(_model, { fields }, { body }) {
      fields['name'] = body!['name'];
      fields['algorithm'] = body!['lb_algorithm'] ?? fields['algorithm'];
      if (body!['members']) fields['members'] = byEndpoint(body!['members']);
      return ok;
    },
  },
  {
    name: 'add member',
    on: 'pool',
    weight: 2,
    method: 'POST',
    path: `${balancers.replace('{scope}', '{scope}/pools/{on}')}/members`,
    body: (choice) => ({ ...someMember(choice) }),
    expect(_model, { fields }, { body }) {
      const member = body as Member;
      if (fields['members'].some((other: Member) => endpoint(other) === endpoint(member)))
        return refused(409, 'Conflict');
      fields['members'] = byEndpoint([...fields['members'], member]);
      return ok;
    },
  },
  {
    name: 'add health monitor',
    on: 'pool',
    method: 'POST',
    path: `${pools}/{on}/healthmonitor`,
    when: (_model, { fields }) => fields['monitor'] === null,
    body: ({ random }) => ({ type: 'TCP', delay: 10 + random.int(3), timeout: 5, max_retries: 2 }),
    expect(_model, { fields }, { body }) {
      fields['monitor'] = body!['delay'];
      return ok;
    },
  },
  {
    name: 'remove health monitor',
    on: 'pool',
    method: 'DELETE',
    path: `${pools}/{on}/healthmonitor`,
    when: (_model, { fields }) => fields['monitor'] !== null,
    expect(_model, { fields }) {
      if (fields['monitor'] === null) return refused(404);
      fields['monitor'] = null;
      return ok;
    },
  },
  deletes('pool', pools),
];

export const loadBalancers: Resource = {
  kinds: [balancerKind, listenerKind, poolKind],
  commands: [...balancerCommands, ...listenerCommands, ...poolCommands],
};
