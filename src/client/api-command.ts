/** `cloudyard api METHOD PATH`: any request, with the credentials of the context. */
import { Command } from 'commander';
import { parsedBody, textOf } from './body.ts';
import { targetOf, type TargetOptions } from './contexts.ts';
import { usageError } from './errors.ts';
import { type Api, createApi, listAll, withQuery } from './http.ts';
import type { Io } from './io.ts';
import { createNames } from './names.ts';
import { jsonText, withLineBreak } from './output.ts';
import { addTargetOptions, collect } from './program-options.ts';

interface ApiOptions extends TargetOptions {
  body?: string;
  field?: string[];
  paginate?: boolean;
}

export const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

export function addApiCommand(program: Command, io: Io): void {
  const command = program
    .command('api')
    .summary('Send any request and print the response')
    .description(
      'Send any request and print the response as it is. {project} and {region} in the path are replaced by those of the context.',
    )
    .argument('<method>', methods.join(', '))
    .argument('<path>', 'path with its query, such as /cloud/v1/projects')
    .option('--body <JSON>', 'the body as JSON or YAML, @FILE, or - for standard input')
    .option(
      '-f, --field <KEY=VALUE>',
      'a field of the body, where JSON values such as 1, true and null keep their type, or of the query for GET',
      collect,
    )
    .option('--paginate', 'request all pages of a list and print one');
  addTargetOptions(command).action((method: string, path: string, options: ApiOptions) =>
    send(method.toUpperCase(), path, options, io),
  );
}

async function send(method: string, given: string, options: ApiOptions, io: Io): Promise<void> {
  if (!methods.includes(method)) throw usageError(`the method must be one of: ${methods.join(', ')}`);
  if (!given.startsWith('/') || given.startsWith('//')) throw usageError('the path must start with one /');
  if (options.paginate && method !== 'GET') throw usageError('--paginate needs the method GET');
  const api = createApi(targetOf(options, io.env));
  const path = await withScope(given, api);
  const fields = (options.field ?? []).map(fieldOf);
  const isRead = method === 'GET' || method === 'HEAD';
  if (isRead && options.body !== undefined) throw usageError(`--body needs another method than ${method}`);
  if (isRead) {
    const query = fields.reduce((found, [name, text]) => withQuery(found, { [name]: text }), path);
    if (options.paginate) {
      const results = await listAll(api, query);
      return io.out(jsonText({ count: results.length, results }));
    }
    return print(await api.send({ method, path: query, onEvents: io.out }), io);
  }
  const body = options.body === undefined ? undefined : await parsedBody(await textOf('--body', options.body, io));
  if (fields.length > 0 && Array.isArray(body)) throw usageError('--body is an array, so -f cannot add to it');
  const sent = fields.length > 0 ? { ...(body as object | undefined), ...bodyFields(fields) } : body;
  await print(await api.send({ method, path, body: sent }), io);
}

/** Requests with names of the context need the IDs. */
async function withScope(path: string, api: Api): Promise<string> {
  const names = createNames(api);
  let result = path;
  for (const name of ['project', 'region'] as const) {
    if (!result.includes(`{${name}}`)) continue;
    const id = await names.id(`${name}_id`, api.target[name]);
    result = result.replaceAll(`{${name}}`, () => encodeURIComponent(id));
  }
  return result;
}

function print({ text, body }: { text: string; body: unknown }, io: Io): void {
  if (body !== undefined) io.out(jsonText(body));
  else io.out(withLineBreak(text));
}

type Field = readonly [name: string, text: string];

function fieldOf(given: string): Field {
  const [, name, text] = /^([^=]+)=(.*)$/s.exec(given) ?? [];
  if (name === undefined) throw usageError(`-f must be KEY=VALUE, not ${JSON.stringify(given)}`);
  return [name, text!];
}

/** @throws CommandError for a field that is given twice */
function bodyFields(fields: Field[]): Record<string, unknown> {
  const found = new Map<string, unknown>();
  for (const [name, text] of fields) {
    if (found.has(name)) throw usageError(`-f ${name} is given twice; write a list as JSON: -f '${name}=["a","b"]'`);
    found.set(name, valueOf(text));
  }
  return Object.fromEntries(found);
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
