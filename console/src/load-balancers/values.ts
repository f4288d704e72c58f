/** Between resources, the values of forms and the bodies of requests. */
import { isNullable, type JsonSchema, schemaAt } from '../ui/form/schema.ts';
import { isPlain, TAGS, type Values } from '../ui/form/use-form.ts';
import { formatBytes, formatNumber } from '../ui/numbers.ts';
import type { LoadBalancer } from './data.ts';

/** `1 vCPU, 2 GiB`. `ram` is in MiB. */
export function flavorSize({ vcpus, ram }: { readonly vcpus: number; readonly ram: number }): string {
  return `${formatNumber(vcpus)} vCPU, ${formatBytes(ram * 1024 ** 2)}`;
}

/** The addresses of a load balancer: of the family dual, two. */
export function addressesOf({ vip_address, additional_vips }: LoadBalancer): string[] {
  return [...(vip_address === null ? [] : [vip_address]), ...additional_vips.map(({ ip_address }) => ip_address)];
}

/** Fields of requests that the server ignores: members and monitors accept their own responses. */
const IGNORED = ['id', 'operating_status', 'provisioning_status', 'instance_id'];

/** The fields of a resource that the request `schema` has, without those that are null. */
export function editable(schema: JsonSchema, resource: object): Values {
  const kept = Object.entries(resource).flatMap(([key, value]: [string, unknown]): [string, unknown][] => {
    const inner = schemaAt(schema, key);
    if (!inner || value === null || IGNORED.includes(key)) return [];
    if (Array.isArray(value) && inner.items?.properties) {
      return [[key, value.map((item: object) => editable(inner.items!, item))]];
    }
    return [[key, typeof value === 'object' && inner.properties ? editable(inner, value) : value]];
  });
  return Object.fromEntries(kept);
}

/** Without undefined, empty texts and objects that thereby became empty, inside lists as well. */
export function compact(values: Values): Values {
  const kept = Object.entries(values).flatMap(([key, value]): [string, unknown][] => {
    const next = key === TAGS ? value : compactValue(value);
    return next === undefined ? [] : [[key, next]];
  });
  return Object.fromEntries(kept);
}

function compactValue(value: unknown): unknown {
  if (value === '' || value === undefined) return undefined;
  if (Array.isArray(value)) return value.map((item: unknown) => (isPlain(item) ? compact(item) : item));
  if (!isPlain(value)) return value;
  const inner = compact(value);
  return Object.keys(inner).length === 0 && Object.keys(value).length > 0 ? undefined : inner;
}

/**
 * What an edit sends: the fields that changed, so that a change of another field by another client is kept. A field that was
 * cleared is null, where the API has that.
 */
export function changedFields(schema: JsonSchema, before: Values, after: Values): Values {
  const next = compact(after);
  const old = compact(before);
  const names = [...new Set([...Object.keys(old), ...Object.keys(next)])];
  const changed = names.filter((name) => JSON.stringify(old[name]) !== JSON.stringify(next[name]));
  return Object.fromEntries(changed.map((name) => [name, next[name] ?? emptyOf(schema, name)]));
}

function emptyOf(schema: JsonSchema, name: string): null | '' {
  return isNullable(schema, name) ? null : '';
}
