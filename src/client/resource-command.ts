/** Runs the command of an operation: builds the request, waits for tasks, and prints the result. */
import { bodyOf, hasFields, optionOf } from './body.ts';
import { targetOf, type TargetOptions } from './contexts.ts';
import { usageError } from './errors.ts';
import { type Api, createApi, isPaged, listAll, type Response, silenceMs, withQuery } from './http.ts';
import type { Io } from './io.ts';
import { createNames, type Names, type Values, withIds } from './names.ts';
import { formatOf, formatted, type OutputOptions, requireColumns, withLineBreak } from './output.ts';
import { operandNames, type Operation, operationById, operationOf } from './table.ts';
import { optionValue } from './values.ts';
import { createProgress, defaultTimeout, type Task, waitForTasks } from './waiting.ts';

export interface RunOptions extends TargetOptions, OutputOptions {
  wait?: boolean;
  timeout?: string;
  body?: string;
}

interface Invocation {
  operation: Operation;
  /** Values of the path parameters without project and region, in their order. */
  operands: string[];
  options: RunOptions;
  /** Texts of the options for fields of the query and of the body, by the names of the API. */
  query: Record<string, string[]>;
  fields: Record<string, string[]>;
}

/** What was sent. */
interface Sent {
  operation: Operation;
  values: Values;
  api: Api;
  names: Names;
}

/** Operations whose response does not name their task: its type, and the operation of the resource that it changes. */
const unnamedTasks: Record<string, { type: string; of: string }> = {
  revertVolume: { type: 'revert_volume', of: 'getVolume' },
};

/** A server that is loaded needs time, also for a command that does not wait for its task. */
const shortestSilenceMs = 10_000;

export async function runOperation({ operation, operands, options, query, fields }: Invocation, io: Io): Promise<void> {
  formatOf(options);
  // Before a change is sent: a script that fails here may be run again.
  requireColumns(options, printedFields(operation, options));
  const timeout = secondsOf(options.timeout);
  const api = createApi(targetOf(options, io.env), Math.min(silenceMs, Math.max(shortestSilenceMs, timeout * 1000)));
  const names = createNames(api);
  const values: Values = Object.fromEntries(operandNames(operation.path).map((name, i) => [name, operands[i]!]));
  const body = await bodyOf(operation, options.body, fields, io);
  const path = withQuery(await names.path(operation.path, values), await queryOf(operation, query, names));
  const print = async (data: unknown, of: Operation = operation) =>
    io.out(await formatted(data, of.fields ?? [], options));

  if (operation.result === 'stream') return api.stream({ method: 'GET', path }, io.out);
  if (operation.result === 'list' && operation.method === 'GET') {
    const paged = isPaged(operation) && !('limit' in query) && !('offset' in query);
    // The log of changes is paged by `before`, and is long: one page, unless there is a count.
    return print(await listAll(api, path, { paged: paged && 'offset' in (operation.query ?? {}) }));
  }
  const response = await api.send({
    method: operation.method,
    path,
    // The keys of a map, such as tags, are not fields.
    body: hasFields(operation) ? await withIds(body, names, values) : body,
    contentType: operation.contentType,
  });
  const sent: Sent = { operation, values, api, names };
  const tasks = await tasksOf(sent, response);
  // An update that changes nothing starts no task, and prints the resource like one that does.
  if (tasks.length === 0 && operation.result !== 'tasks') return printResponse(response, operation, print, io);
  if (options.wait === false) return print(options.quiet ? tasks.map((id) => ({ id })) : { tasks });
  const progress = createProgress(io.err, options.quiet === true);
  const ended = await waitForTasks(api, tasks, timeout, progress);
  const shown = await resultOf(sent, ended);
  if (shown) await print(shown.data, shown.operation);
}

/** The fields of the result; empty if they are not known. */
function printedFields(operation: Operation, { wait, quiet }: RunOptions): string[] {
  if (operation.result !== 'tasks') return operation.fields ?? [];
  if (wait === false) return quiet ? ['id'] : ['tasks'];
  return (operation.method !== 'DELETE' && showOf(operation)?.fields) || [];
}

function showOf({ command }: Operation): Operation | undefined {
  return operationOf([...command.slice(0, -1), 'show']);
}

/** The value of `--timeout`. @throws CommandError */
export function secondsOf(text: string | undefined): number {
  if (text === undefined) return defaultTimeout;
  if (!/^\d{1,9}(\.\d+)?$/.test(text))
    throw usageError(`--timeout must be a number of seconds, not ${JSON.stringify(text)}`);
  return Number(text);
}

async function queryOf(
  { query: declared = {} }: Operation,
  texts: Record<string, string[]>,
  names: Names,
): Promise<Record<string, unknown>> {
  const missing = Object.keys(declared).filter((name) => declared[name]!.required && !texts[name]);
  if (missing.length > 0) throw usageError(`required: ${missing.map((name) => optionOf(name, 'query')).join(', ')}`);
  const entries = Object.entries(texts).map(([name, values]) => {
    const value = optionValue(optionOf(name, 'query'), values, declared[name]!);
    // The filters by tags are JSON.
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
    return [name, isMap ? JSON.stringify(value) : value];
  });
  return (await withIds(Object.fromEntries(entries), names)) as Record<string, unknown>;
}

async function tasksOf({ operation, values, api, names }: Sent, { body }: Response): Promise<string[]> {
  if (operation.result === 'tasks') return (body?.tasks ?? []) as string[];
  const unnamed = unnamedTasks[operation.id];
  if (!unnamed) return [];
  const resource = (await names.path(operationById(unnamed.of).path, values)).split('/').at(-1)!;
  // The newest one. It may have ended already.
  const query = { task_type: unnamed.type, resource_id: resource, limit: 1 };
  const found = await api.send({ method: 'GET', path: withQuery('/cloud/v1/tasks', query) });
  return (found.body.results as { id: string }[]).map(({ id }) => id);
}

async function printResponse(
  { body, text, status }: Response,
  operation: Operation,
  print: (data: unknown) => Promise<void>,
  io: Io,
): Promise<void> {
  if (body !== undefined) return print(operation.result === 'list' ? body.results : body);
  if (status !== 204) io.out(withLineBreak(text));
}

/** The resource after the change: what was created, or what the operands name. Nothing after a deletion. */
async function resultOf(
  { operation, values, api, names }: Sent,
  tasks: Task[],
): Promise<{ data: unknown; operation: Operation } | undefined> {
  if (operation.method === 'DELETE') return undefined;
  const show = showOf(operation);
  const wanted = show ? operandNames(show.path) : [];
  const last = wanted.at(-1);
  const id = createdId(tasks, show?.path ?? operation.path);
  const isCreation = last !== undefined && !(last in values) && id !== undefined;
  const all: Values = isCreation ? { ...values, [last]: id } : values;
  if (show && wanted.every((name) => name in all)) {
    const { body } = await api.send({ method: 'GET', path: await names.path(show.path, all) });
    return { data: body, operation: show };
  }
  if (id === undefined) return undefined;
  return { data: { id }, operation: { ...operationById('getTask'), fields: ['id'] } };
}

/** A load balancer and its listeners are created by one task, which names the ids of each kind. */
function createdId(tasks: Task[], path: string): string | undefined {
  const created = Object.assign({}, ...tasks.map((task) => task.created_resources ?? {})) as Record<string, unknown[]>;
  const collection =
    path
      .replace('/{project_id}/{region_id}', '')
      .split('/')
      .findLast((part) => /^\w+$/.test(part)) ?? '';
  const kinds = Object.keys(created);
  const kind = kinds.find((name) => name === collection || `lb${name}` === collection) ?? kinds[0];
  const id = kind === undefined ? undefined : created[kind]![0];
  return id === undefined ? undefined : String(id);
}
