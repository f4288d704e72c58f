/**
 * Derives the commands of the client from the API: src/client/operations.json and src/client/first-words.json.
 *
 * The words of a command come from the operation's id: `createFileShareAccessRule` is `file-share access-rule create`. The
 * group is the name of a shape in the API (`Volume` in `listVolumes`), or an entry of `nouns`. An operation without a command
 * fails `npm run generate`.
 */
import type { Operation, Schema, Table } from '../client/table.ts';
import { ruleOf } from '../http/patterns.ts';
import type { Command } from './command-line.ts';

interface Reference {
  $ref?: string;
}

interface DocumentSchema extends Schema {
  title?: string;
  examples?: unknown[];
  allOf?: DocumentSchema[];
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema: DocumentSchema;
}

interface Body extends Reference {
  required?: boolean;
  content?: Record<string, { schema: DocumentSchema }>;
}

interface DocumentOperation {
  operationId: string;
  summary: string;
  description?: string;
  deprecated?: boolean;
  parameters?: (Parameter & Reference)[];
  requestBody?: Body;
  responses: Record<string, Body>;
}

interface Document {
  paths: Record<string, Record<string, DocumentOperation>>;
  components: Record<string, Record<string, any>>;
}

/** Groups that are not the name of a shape, by the noun in the id of the operation. */
const nouns: Record<string, string> = {
  NetworkMetadata: 'network metadata',
  SubnetMetadata: 'subnet metadata',
  FileShareAccessRule: 'file-share access-rule',
  FileShareMetadata: 'file-share metadata',
  VolumeMetadata: 'volume metadata',
  SnapshotMetadata: 'snapshot metadata',
  LoadBalancerMetadata: 'load-balancer metadata',
  LoadBalancerFlavor: 'load-balancer flavor',
  LbPool: 'pool',
  LbPoolHealthMonitor: 'pool health-monitor',
  LbPoolMember: 'pool member',
  L7Rule: 'l7-policy rule',
  LifecyclePolicySchedule: 'lifecycle-policy schedule',
  LifecyclePolicyVolume: 'lifecycle-policy volume',
  RegistryUser: 'registry user',
  RegistryRepository: 'registry repository',
  RegistryArtifact: 'registry artifact',
  RegistryTag: 'registry tag',
  RegistryToken: 'registry token',
  NotificationThreshold: 'notification threshold',
  Clock: 'clock',
  // `client`, `host` and `token` are commands of the operator, on the database.
  Host: 'region host',
  Client: 'client-account',
  Token: 'api-token',
};

/** Commands that the id does not give. */
const exceptions: Record<string, string> = {
  getIndex: 'server show',
  getHealth: 'server health',
  getReadiness: 'server readiness',
  getDriverHealth: 'server drivers',
  getMetrics: 'server metrics',
  getOpenApi: 'server openapi',
  acknowledgeTasks: 'task acknowledge-several',
  acknowledgeAllTasks: 'task acknowledge-all',
  listActiveTasks: 'task list-active',
  listAvailableNetworks: 'network list-available',
  createRegistryUsers: 'registry user create-several',
  receiveRegistryEvents: 'registry receive-events',
  getSignInMethods: 'server sign-in-methods',
  startSignIn: 'session start-sign-in',
  finishSignIn: 'session finish-sign-in',
  startDeviceSignIn: 'session start-device-sign-in',
  finishDeviceSignIn: 'session finish-device-sign-in',
  authorizeContainer: 'api-key authorize',
  authorizeContainerByPath: 'api-key authorize-by-path',
  auditQuotas: 'client-quota audit',
  listClientQuotas: 'client-quota list',
  getGlobalQuotas: 'client-quota show-global',
  getRegionalQuotas: 'client-quota show-regional',
  updateClientQuotas: 'client-quota update',
  replayDelivery: 'notification replay-delivery',
  listAudit: 'audit-log list',
  streamEvents: 'event stream',
  subscribeToUserActions: 'user-action subscribe',
  unsubscribeFromUserActions: 'user-action unsubscribe',
  listUserActionSubscriptions: 'user-action list-subscriptions',
};

/** Commands of the client that are not operations. */
const otherFirstWords = ['api', 'apply', 'batch', 'diff', 'context', 'login', 'completion', '__complete'];

/**
 * The words of the command of an operation. `shapes`: the names of the shapes in the API.
 * @throws Error if neither `nouns` nor `shapes` has its noun
 */
export function commandOf(id: string, shapes: readonly string[]): string[] {
  if (exceptions[id]) return exceptions[id].split(' ');
  const [, verb = '', rest = '', version = ''] = /^([a-z]+)(.*?)(V\d)?$/.exec(id) ?? [];
  const isNoun = (noun: string) => afterNoun(noun, rest) !== null;
  const byLength = (a: string, b: string) => a.length - b.length;
  // `listFileShareUsage` is a command of `FileShare`, although there is a shape `FileShareUsage`.
  const noun = Object.keys(nouns).filter(isNoun).sort(byLength).at(-1) ?? shapes.filter(isNoun).sort(byLength)[0];
  if (noun === undefined) throw new Error(`operation ${id} has no command: add its noun to src/main/client-table.ts`);
  const action = [verb === 'get' ? 'show' : verb, kebab(afterNoun(noun, rest)!), version.toLowerCase()];
  return [...(nouns[noun] ?? kebab(noun)).split(' '), action.filter((part) => part !== '').join('-')];
}

/** What follows the noun or its plural; null if the text does not start with either. */
function afterNoun(noun: string, text: string): string | null {
  const plural = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  for (const form of [plural, noun]) {
    const after = text.slice(form.length);
    if (text.startsWith(form) && !/^[a-z]/.test(after)) return after;
  }
  return null;
}

function kebab(words: string): string {
  return words.replaceAll(/(?<=[a-z\d])(?=[A-Z])/g, '-').toLowerCase();
}

/** `commands` are those of the operator, which the client completes. */
export function clientTable(document: Document, commands: Command[]): Table {
  const shapes = createShapes(document);
  const shapeNames = Object.keys(document.components['schemas']!);
  const parameters: Record<string, Schema> = {};
  const operations: Operation[] = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, given] of Object.entries(methods)) {
      const declared = (given.parameters ?? []).map((parameter) => shapes.follow(parameter) as Parameter);
      const query: NonNullable<Operation['query']> = {};
      for (const { name, in: place, required, description, schema } of declared) {
        const shape = { ...shapes.compact(schema), ...(description && { description }) };
        if (place === 'path') parameters[name] = shape;
        if (place === 'query') query[name] = { ...shape, ...(required && { required }) } as never;
      }
      operations.push({
        id: given.operationId,
        command: commandOf(given.operationId, shapeNames),
        method: method.toUpperCase(),
        path,
        summary: given.summary,
        ...(given.description && { description: given.description }),
        ...(Object.keys(query).length > 0 && { query }),
        ...bodyOf(given, shapes),
        ...resultOf(given, shapes),
        ...((given.deprecated || /V\d$/.test(given.operationId)) && { hidden: true }),
      });
    }
  }
  refuseAmbiguity(operations);
  return {
    operations,
    schemas: shapes.used(),
    rules: shapes.rules(),
    parameters,
    lists: listsOf(operations),
    groups: groupsOf(operations),
    operatorCommands: Object.fromEntries(commands.map(({ name, options }) => [name, Object.keys(options)])),
  };
}

type Shapes = ReturnType<typeof createShapes>;

/**
 * Shapes without what the client does not use. `used` returns those that were referred to, `rules` the words of their patterns.
 */
function createShapes({ components }: Document) {
  const used: Record<string, Schema> = {};
  const rules: Record<string, string> = {};
  const follow = (value: Reference): any => {
    if (!value.$ref) return value;
    const [, kind, name] = /^#\/components\/(\w+)\/(.+)$/.exec(value.$ref)!;
    return components[kind!]![name!];
  };
  const compact = (schema: DocumentSchema): Schema => {
    const { title: _, examples: __, ...kept } = schema;
    const rule = kept.pattern === undefined ? undefined : ruleOf(kept.pattern);
    if (rule !== undefined) rules[kept.pattern!] = rule;
    if (kept.$ref) {
      const name = kept.$ref.split('/').at(-1)!;
      if (!used[name]) {
        used[name] = {};
        used[name] = compact(follow(schema));
      }
      return { ...kept, $ref: `#/schemas/${name}` };
    }
    return {
      ...kept,
      ...(kept.properties && { properties: mapValues(kept.properties, compact) }),
      ...(kept.items && { items: compact(kept.items) }),
      ...(kept.anyOf && { anyOf: kept.anyOf.map(compact) }),
      ...(typeof kept.additionalProperties === 'object' && {
        additionalProperties: compact(kept.additionalProperties),
      }),
      ...(kept.propertyNames && { propertyNames: compact(kept.propertyNames) }),
    };
  };
  return { follow, compact, used: () => used, rules: () => rules };
}

function mapValues<T, U>(values: Record<string, T>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
}

function bodyOf({ requestBody }: DocumentOperation, shapes: Shapes): Partial<Operation> {
  if (!requestBody) return {};
  const { content = {}, required } = shapes.follow(requestBody) as Body;
  const [[type, { schema }] = ['', { schema: {} }]] = Object.entries(content);
  return {
    body: shapes.compact(schema),
    ...(type !== 'application/json' && { contentType: type }),
    ...(!required && { bodyOptional: true as const }),
  };
}

function resultOf({ responses }: DocumentOperation, shapes: Shapes): Pick<Operation, 'result' | 'fields'> {
  const response = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1];
  if (!response) return { result: 'none' };
  const [[type, { schema }] = ['', { schema: {} as DocumentSchema }]] = Object.entries(
    (shapes.follow(response) as Body).content ?? {},
  );
  if (type === '') return { result: 'none' };
  if (type === 'text/event-stream') return { result: 'stream' };
  if (type !== 'application/json') return { result: 'text' };
  const shape = shapes.follow(schema) as DocumentSchema;
  if (shape.properties?.['tasks'] && Object.keys(shape.properties).length === 1) return { result: 'tasks' };
  const items = shape.properties?.['results']?.items;
  const fields = fieldsOf(items ?? shape, shapes);
  return { result: items ? 'list' : 'object', ...(fields.length > 0 && { fields }) };
}

function fieldsOf(schema: DocumentSchema, shapes: Shapes): string[] {
  const { properties = {}, anyOf = [], allOf = [] } = shapes.follow(schema as Reference) as DocumentSchema;
  const parts = [...anyOf, ...allOf];
  return [...new Set([...Object.keys(properties), ...parts.flatMap((part) => fieldsOf(part, shapes))])];
}

/** Ids can be replaced by names where a list has both. */
function listsOf(operations: Operation[]): Record<string, string> {
  const lists: Record<string, string> = {};
  for (const { path, hidden } of operations) {
    const [, collection, parameter] = /^(.*)\/\{(\w+)\}$/.exec(path) ?? [];
    if (!parameter?.endsWith('_id') || hidden || lists[parameter]) continue;
    const list = operations.find((other) => other.method === 'GET' && other.path === collection);
    if (list?.result === 'list' && list.fields?.includes('name') && list.fields.includes('id')) {
      lists[parameter] = list.id;
    }
  }
  return { ...lists, region_id: 'listRegions' };
}

function groupsOf(operations: Operation[]): Record<string, string> {
  const groups: Record<string, Set<string>> = {};
  for (const { command, hidden } of operations) {
    if (!hidden) (groups[command[0]!] ??= new Set()).add(command.slice(1).join(' '));
  }
  return mapValues(groups, (actions) => [...actions].filter((action) => !action.includes(' ')).join(', '));
}

function refuseAmbiguity(operations: Operation[]): void {
  const names = operations.map(({ command }) => command.join(' '));
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new Error(`two operations have the command ${twice}: add one to src/main/client-table.ts`);
  const isGroup = names.find((name) => names.some((other) => other.startsWith(`${name} `)));
  if (isGroup) throw new Error(`${isGroup} is a command and a group: change one in src/main/client-table.ts`);
}

/** One line an operation and a shape, so that a change is readable. */
export function clientTableText({ operations, schemas, ...rest }: Table): string {
  const lines = (values: string[]) => values.map((value) => `    ${value}`).join(',\n');
  return [
    '{',
    '  "operations": [',
    lines(operations.map((operation) => JSON.stringify(operation))),
    '  ],',
    '  "schemas": {',
    lines(Object.entries(schemas).map(([name, schema]) => `${JSON.stringify(name)}: ${JSON.stringify(schema)}`)),
    '  },',
    Object.entries(rest)
      .map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
      .join(',\n'),
    '}',
    '',
  ].join('\n');
}

/** `bin/cloudyard.mjs` reads them to run the client without the server's flags. */
export function firstWordsText({ groups }: Table): string {
  return `${JSON.stringify([...Object.keys(groups), ...otherFirstWords].sort(), null, 2)}\n`;
}
