/** Writes HCL in the layout of `terraform fmt`. */
import { escapeHidden } from './request.ts';

/** An expression that is written as it is, such as `gcore_network.a.id`. */
export class Expression {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Value = boolean | number | string | Expression | Value[] | { [key: string]: Value };

export interface Block {
  /** The type, and the labels of a resource. */
  head: [string, ...string[]];
  attributes: Record<string, Value>;
  blocks: Block[];
}

export function hclOf({ head: [type, ...labels], attributes, blocks }: Block): string {
  const parts = [attributesOf(attributes), ...blocks.map(hclOf)].filter((part) => part !== '');
  return `${[type, ...labels.map(quote)].join(' ')} {\n${indented(parts.join('\n\n'))}\n}`;
}

/** Equals signs are aligned. Maps follow the other attributes, because a map ends an aligned group. */
function attributesOf(attributes: Record<string, Value>): string {
  const entries = Object.entries(attributes);
  const maps = entries.filter(([, value]) => isMap(value));
  const single = entries.filter(([, value]) => !isMap(value));
  const groups = [aligned(single), ...maps.map(([key, value]) => `${key} = ${valueOf(value)}`)];
  return groups.filter((group) => group !== '').join('\n\n');
}

function aligned(entries: [string, Value][]): string {
  const width = Math.max(0, ...entries.map(([key]) => key.length));
  return entries.map(([key, value]) => `${key.padEnd(width)} = ${valueOf(value)}`).join('\n');
}

function valueOf(value: Value): string {
  if (value instanceof Expression) return value.text;
  if (typeof value === 'string') return quote(value);
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[${value.map(valueOf).join(', ')}]`;
  return `{\n${indented(aligned(Object.entries(value).map(([key, item]) => [keyOf(key), item])))}\n}`;
}

/** A bare key must be an identifier. */
function keyOf(key: string): string {
  return /^[a-z_]\w*$/i.test(key) ? key : quote(key);
}

/** `${` and `%{` begin templates. */
function quote(text: string): string {
  const escaped = text
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n')
    .replaceAll(/[$%](?=\{)/g, '$&$&');
  return `"${escapeHidden(escaped)}"`;
}

function isMap(value: Value): boolean {
  return typeof value === 'object' && !Array.isArray(value) && !(value instanceof Expression);
}

/** Strings contain no line breaks, so every line is one of code. */
function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, '  ');
}
