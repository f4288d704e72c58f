import { pythonMethods } from './python-methods.ts';
import { type ApiRequest, baseUrlOf, escapeHidden, isObject, isPlace, type Json, type JsonObject } from './request.ts';
import { answersWithTasks } from './task-operations.ts';

/** Fields of bodies whose argument has another name: a list of the operations and the two names. */
const renamed: Record<string, Record<string, string>> = {
  createListener: { loadbalancer_id: 'load_balancer_id' },
  createLbPoolHealthMonitor: { timeout: 'api_timeout' },
  updateLbPoolHealthMonitor: { timeout: 'api_timeout' },
};

/** Clients may repeat them from responses. */
const repeatedFields = ['id', 'operating_status', 'provisioning_status'];

/** Fields of bodies without an argument. They are sent with `extra_body`. */
const extraBodyFields: Record<string, string[]> = {
  addLbPoolMember: repeatedFields,
  createFileShare: ['metadata'],
  createLbPool: ['loadbalancer_id'],
  createLbPoolHealthMonitor: repeatedFields,
  createListener: ['default_pool_id'],
  createLoadBalancer: ['metadata'],
  createNetwork: ['metadata'],
  createProject: ['client_id', 'state'],
  createQuotaRequest: ['client_id'],
  createSnapshot: ['metadata'],
  createSubnet: ['metadata'],
  createVolume: ['metadata'],
  updateFileShare: ['size'],
  updateLbPoolHealthMonitor: [...repeatedFields, 'type'],
  updateLbPool: ['admin_state_up'],
  updateListener: ['admin_state_up'],
  updateVolume: ['size'],
  updateLoadBalancerV1: ['flavor'],
};

/** Parameters of queries without an argument. They are sent with `extra_query`. */
const extraQueryFields = ['delete_default_pool', 'need_volumes'];

/** Arguments that the SDK requires and the API does not. */
export const requiredArguments: Record<string, string[]> = {
  createListener: ['load_balancer_id'],
  setNotificationThreshold: ['threshold'],
  updateL7Rule: ['compare_type', 'type', 'value'],
};

/** Names and values of the arguments, by the names of the SDK. */
export function pythonArguments(request: ApiRequest): JsonObject {
  const { operationId, params = {}, query = {}, body } = request;
  const given: JsonObject = {};
  const extraBody: JsonObject = {};
  const extraQuery: JsonObject = {};
  // The client has the project and the region.
  for (const [name, value] of Object.entries(params)) if (!isPlace(name)) given[name] = value;
  if (isObject(body)) {
    for (const [name, value] of Object.entries(body)) {
      const target = extraBodyFields[operationId]?.includes(name) ? extraBody : given;
      target[renamed[operationId]?.[name] ?? name] = value;
    }
  } else if (body !== undefined) given['body'] = body as Json;
  for (const [name, value] of Object.entries(query)) {
    (extraQueryFields.includes(name) ? extraQuery : given)[name] = value ?? undefined;
  }
  if (Object.keys(extraBody).length > 0) given['extra_body'] = extraBody;
  if (Object.keys(extraQuery).length > 0) given['extra_query'] = extraQuery;
  return given;
}

/** Prints the results. Reads the token from CLOUDYARD_TOKEN. */
export function pythonFor(requests: readonly [ApiRequest, ...ApiRequest[]]): string | null {
  const statements = requests.map(statementOf);
  if (statements.some((statement) => statement === null)) return null;
  const [request] = requests;
  const places = Object.entries(request.params ?? {}).filter(([name]) => isPlace(name));
  const client = call('Gcore', [
    "api_key=os.environ['CLOUDYARD_TOKEN']",
    `base_url=${literal(baseUrlOf(request))}`,
    ...places.map(([name, value]) => `cloud_${name}=${Number(value)}`),
  ]);
  return `import os\n\nfrom gcore import Gcore\n\nclient = ${client}\n${statements.join('\n')}\n`;
}

function statementOf(request: ApiRequest): string | null {
  const { operationId } = request;
  const method = pythonMethods[operationId];
  const given = pythonArguments(request);
  if (!method || requiredArguments[operationId]?.some((name) => given[name] === undefined)) return null;
  const pairs = Object.entries(given).filter(([, value]) => value !== undefined);
  const values = pairs.map(([name, value]) => `${name}=${literal(value!)}`);
  const result = call(`client.cloud.${method}`, values);
  if (operationId === 'revertVolume') {
    // The response is empty. The volume has the task ID until the task ends.
    const volume = call('client.cloud.volumes.get', values);
    return `${result}\ntask = ${volume}.task_id\nif task:\n    print(client.cloud.tasks.poll(task))`;
  }
  const waits = answersWithTasks(operationId) && !method.endsWith('_and_poll');
  if (waits) return `for task in ${result}.tasks:\n    print(client.cloud.tasks.poll(task))`;
  return `result = ${result}\nprint(result)`;
}

const widest = 88;

function call(name: string, given: string[]): string {
  return `${name}${bracketed('(', given, ')')}`;
}

/** On one line if that is short. */
function bracketed(open: string, items: string[], close: string): string {
  const line = `${open}${items.join(', ')}${close}`;
  if (line.length <= widest && !line.includes('\n')) return line;
  return `${open}\n${items.map((item) => `${indented(item)},\n`).join('')}${close}`;
}

/** String literals contain no line breaks, so every line is one of code. */
function indented(text: string): string {
  return text.replaceAll(/^/gm, '    ');
}

function literal(value: Json): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) return bracketed('[', value.map(literal), ']');
  const pairs = Object.entries(value).filter(([, item]) => item !== undefined);
  return bracketed(
    '{',
    pairs.map(([name, item]) => `${quote(name)}: ${literal(item!)}`),
    '}',
  );
}

function quote(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n');
  return `'${escapeHidden(escaped)}'`;
}
