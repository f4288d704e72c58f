/** The kinds of resources that files can describe: those that have a name and can be created, listed and deleted. */
import { operandNames, type Operation, operationById, operationOf, propertiesOf, table } from '../table.ts';

export interface Kind {
  name: string;
  create: Operation;
  list: Operation;
  remove: Operation;
  update: Operation | undefined;
  /** Operations that change one field that `update` does not: `size` by `extend`. */
  actions: Record<string, Operation>;
  /** Whether a resource has user-managed tags as a map. */
  tagged: boolean;
  /** Fields that the API returns in another form, and that only a creation uses. */
  creationOnly: string[];
  /** Where a resource has a field whose name differs from that of the creation. */
  liveFields: Record<string, string>;
}

/** Dependencies come first: the order of creation. Deletion reverses it. */
const order = [
  ...['project', 'network', 'subnet', 'secret', 'file-share', 'volume', 'snapshot', 'load-balancer', 'listener'],
  ...['pool', 'l7-policy', 'lifecycle-policy', 'registry', 'api-key', 'pull-secret'],
];

const creationOnly: Record<string, string[]> = { 'load-balancer': ['listeners'] };

const liveFields: Record<string, Record<string, string>> = {
  'load-balancer': { flavor: 'flavor.flavor_id' },
  volume: { type_name: 'volume_type' },
};

let found: Map<string, Kind> | undefined;

export function kinds(): Map<string, Kind> {
  found ??= new Map(
    [...new Set(table.operations.map(({ command }) => command[0]!))]
      .map(kindOf)
      .filter((kind) => kind !== undefined)
      .sort((a, b) => rank(a) - rank(b))
      .map((kind) => [kind.name, kind]),
  );
  return found;
}

function rank({ name }: Kind): number {
  const index = order.indexOf(name);
  return index < 0 ? order.length : index;
}

function kindOf(name: string): Kind | undefined {
  const [create, list, remove] = ['create', 'list', 'delete'].map((action) => operationOf([name, action]));
  if (!create?.body || !list || !remove || operandNames(create.path).length > 0) return undefined;
  const fields = propertiesOf(create.body);
  if (!fields.has('name')) return undefined;
  return {
    ...{ name, create, list, remove },
    update: operationOf([name, 'update']),
    actions: actionsOf(name),
    tagged: fields.get('tags')?.schema.$ref === '#/schemas/CreateTags',
    creationOnly: creationOnly[name] ?? [],
    liveFields: liveFields[name] ?? {},
  };
}

function actionsOf(name: string): Record<string, Operation> {
  const actions = ['extend', 'resize'].map((action) => operationOf([name, action])).filter((action) => action?.body);
  return Object.fromEntries(
    actions.flatMap((action) => [...propertiesOf(action!.body!).keys()].map((field) => [field, action!])),
  );
}

/** Rules of a share are separate resources, and a field of its creation. */
export const accessRules = {
  kind: 'file-share',
  field: 'access',
  list: () => operationById('listFileShareAccessRules'),
  create: () => operationById('createFileShareAccessRule'),
  remove: () => operationById('deleteFileShareAccessRule'),
};

/** Volumes of a policy are a field of its creation, and are added and removed by operations of their own. */
export const policyVolumes = {
  kind: 'lifecycle-policy',
  field: 'volume_ids',
  add: () => operationById('addLifecyclePolicyVolumes'),
  remove: () => operationById('removeLifecyclePolicyVolumes'),
};
