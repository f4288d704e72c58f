/** Accepts names where the API has ids. */
import { CommandError, exitCodes, usageError } from './errors.ts';
import { type Api, isPaged, listAll, withQuery } from './http.ts';
import { operationById, pathParameters, table, typeOf } from './table.ts';

/** Values of path parameters, by their names. */
export type Values = Record<string, string>;

export interface Names {
  /** The path of the template with the ids of the target's project and region and of `values`. */
  path(template: string, values: Values): Promise<string>;
  /** The id of what the parameter names. A value that has the form of an id is returned as it is. */
  id(parameter: string, value: string, values?: Values): Promise<string>;
}

export function createNames(api: Api): Names {
  const known = new Map<string, Promise<string>>();
  const names: Names = {
    async path(template, values) {
      const found: Values = {};
      for (const parameter of pathParameters(template)) {
        const value = values[parameter] ?? defaultOf(parameter);
        if (value === undefined) throw new Error(`no value for ${parameter}`);
        // In a path these name the collection or another resource.
        if (['', '.', '..'].includes(value)) {
          throw usageError(`${kindOf(parameter)} must not be ${JSON.stringify(value)}`);
        }
        found[parameter] = await names.id(parameter, value, { ...values, ...found });
      }
      return template.replaceAll(/\{(\w+)\}/g, (_, parameter: string) => encodeURIComponent(found[parameter]!));
    },
    id(parameter, value, values = {}) {
      const list = table.lists[parameter];
      if (list === undefined || isId(parameter, value)) return Promise.resolve(value);
      const key = JSON.stringify([parameter, value, values]);
      const pending = known.get(key) ?? lookUp(parameter, list, value, values);
      known.set(key, pending);
      return pending;
    },
  };
  const defaultOf = (parameter: string) =>
    ({ project_id: api.target.project, region_id: api.target.region })[parameter];

  async function lookUp(parameter: string, list: string, name: string, values: Values): Promise<string> {
    const operation = operationById(list);
    const path = withQuery(await names.path(operation.path, values), operation.query?.['name'] ? { name } : {});
    const results = await listAll(api, path, { paged: isPaged(operation) });
    const kind = kindOf(parameter);
    const matches = results.filter((item) => item.name === name || item.display_name === name);
    if (matches.length === 1) return String(matches[0].id);
    if (matches.length === 0) throw new CommandError(`${kind} ${name} not found`, exitCodes.notFound);
    const candidates = matches.map(({ id }) => `\n  ${id}`).join('');
    throw new CommandError(
      `${matches.length} of the type ${kind} have the name ${name}; use an ID:${candidates}`,
      exitCodes.usage,
    );
  }
  return names;
}

/** `file_share_id` is `file share`. */
export function kindOf(parameter: string): string {
  return parameter.replace(/_id$/, '').replaceAll('_', ' ');
}

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i;

function isId(parameter: string, value: string): boolean {
  const schema = table.parameters[parameter] ?? {};
  return typeOf(schema) === 'integer' ? /^-?\d+$/.test(value) : uuid.test(value);
}

/** The parameter that a field refers to: `vip_network_id` and `network_ids` refer to `network_id`. */
export function referenceOf(field: string): string | undefined {
  const single = field.replace(/_ids$/, '_id').replace('loadbalancer_id', 'load_balancer_id');
  const known = Object.keys(table.lists).filter((name) => single === name || single.endsWith(`_${name}`));
  return known.sort((a, b) => b.length - a.length)[0];
}

/** A copy of the body in which names of other resources are replaced by their ids. */
export async function withIds(value: unknown, names: Names, values: Values = {}, field = ''): Promise<unknown> {
  // Maps, whose keys are not fields.
  if (field === 'tags' || field === 'metadata') return value;
  if (Array.isArray(value)) return Promise.all(value.map((item) => withIds(item, names, values, field)));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(async ([name, own]) => [name, await withIds(own, names, values, name)]);
    return Object.fromEntries(await Promise.all(entries)) as unknown;
  }
  const parameter = typeof value === 'string' && value !== '' ? referenceOf(field) : undefined;
  if (parameter === undefined || /^(instance|port|floating)/.test(field)) return value;
  const id = await names.id(parameter, value as string, values);
  return id === value || typeOf(table.parameters[parameter] ?? {}) !== 'integer' ? id : Number(id);
}
