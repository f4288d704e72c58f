import { type Block, Expression, hclOf, type Value } from './hcl.ts';
import { type ApiRequest, baseUrlOf, isObject, isPlace, type Json, type JsonObject } from './request.ts';
import { Inexpressible, listOf, type Resource, resources, type Shape } from './terraform-resources.ts';

/** The provider and the resources of a request that creates something. The provider reads GCORE_PERMANENT_TOKEN. */
export function terraformFor(request: ApiRequest): string | null {
  const resource = resources[request.operationId];
  if (!resource || !isObject(request.body)) return null;
  try {
    const blocks = blocksOf(resource, request.body, request.params ?? {});
    return `${providerFor(request)}\n\n${blocks.map(hclOf).join('\n\n')}\n`;
  } catch (error) {
    if (error instanceof Inexpressible) return null;
    throw error;
  }
}

function providerFor(request: ApiRequest): string {
  const gcore = { source: 'G-Core/gcore', version: '~> 0.34' };
  const required: Block = { head: ['required_providers'], attributes: { gcore }, blocks: [] };
  const terraform: Block = { head: ['terraform'], attributes: {}, blocks: [required] };
  const attributes = { api_endpoint: baseUrlOf(request) };
  const provider: Block = { head: ['provider', 'gcore'], attributes, blocks: [] };
  return `${hclOf(terraform)}\n\n# Set GCORE_PERMANENT_TOKEN to the token.\n${hclOf(provider)}`;
}

/** The listeners of a load balancer, the pools of a listener and the members of a pool are resources of their own. */
function blocksOf(resource: Resource, body: JsonObject, params: Record<string, Value>): Block[] {
  const blocks: Block[] = [];
  const labels = new Set<string>();

  const add = (resource: Resource, body: JsonObject, links: Record<string, Value>) => {
    const { type, child, idField } = resource;
    const label = freeLabel(body['name'] ?? body['address'], labels);
    const { [child?.field ?? '']: items, ...own } = body;
    const { attributes, blocks: nested } = fill(resource, resource.prepare?.(own) ?? own);
    const used = Object.entries(links).filter(([name]) => resource.attributes.includes(name) || isPlace(name));
    blocks.push({
      head: ['resource', type, label],
      attributes: { ...Object.fromEntries(used), ...attributes },
      blocks: nested,
    });
    if (!child) return;
    const next = { ...links, [idField!]: new Expression(`${type}.${label}.id`) };
    for (const item of listOf(items)) add(child.resource, isObject(item) ? item : {}, next);
  };
  add(resource, body, params);
  return blocks;
}

function fill(shape: Shape, fields: JsonObject): Pick<Block, 'attributes' | 'blocks'> {
  const attributes: Record<string, Value> = {};
  const blocks: Block[] = [];
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || isEmpty(value) || shape.defaults?.[name] === value) continue;
    if (shape.implied?.includes(name)) continue;
    const nested = shape.blocks?.[name];
    if (nested) {
      for (const item of Array.isArray(value) ? value : [value]) {
        blocks.push({ head: [name], ...fill(nested, isObject(item) ? item : {}) });
      }
    } else if (shape.attributes.includes(name)) attributes[name] = valueOf(value);
    else throw new Inexpressible(name);
  }
  return { attributes, blocks };
}

function isEmpty(value: Json): boolean {
  return value === null || (Array.isArray(value) && value.length === 0);
}

function valueOf(value: Json): Value {
  if (value === null) throw new Inexpressible('null');
  if (typeof value !== 'object') return value;
  if (Array.isArray(value)) return value.map(valueOf);
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [key, valueOf(item!)]));
}

/** An identifier made of the name; letters of other scripts are left out. */
function freeLabel(name: Json | undefined, used: Set<string>): string {
  const words = String(name ?? '')
    .toLowerCase()
    .match(/[a-z0-9]+/g);
  const base = (words ?? ['this']).join('_').replace(/^(?=\d)/, '_');
  let label = base;
  for (let number = 2; used.has(label); number++) label = `${base}_${number}`;
  used.add(label);
  return label;
}
