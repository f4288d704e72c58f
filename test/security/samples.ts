/** Valid values of the schemas of the OpenAPI document. */
import fc from 'fast-check';

export interface Schema {
  type?: string;
  examples?: unknown[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  minItems?: number;
  format?: string;
  pattern?: string;
  minLength?: number;
  minimum?: number;
  exclusiveMinimum?: number;
}

/** A valid value of a schema, with the given ids for fields that are ids. */
export function sample(schema: Schema, name: string, owned: ReadonlyMap<string, string>): unknown {
  if (schema.examples) return schema.examples[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum[0];
  if (schema.anyOf) return sample(schema.anyOf[0]!, name, owned);
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((part) => sample(part, name, owned) as object));
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        (schema.required ?? []).map((key) => [key, sample(schema.properties?.[key] ?? { type: 'string' }, key, owned)]),
      );
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () =>
        sample(schema.items ?? {}, name.replace(/s$/, ''), owned),
      );
    case 'integer':
    case 'number':
      return Math.max(schema.minimum ?? 1, (schema.exclusiveMinimum ?? 0) + 1);
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'string':
      return owned.get(name) ?? sampleText(schema);
    default:
      return 'x';
  }
}

const formats: Record<string, string> = {
  password: 'x',
  uuid: '11111111-1111-4111-8111-111111111111',
  'ip-network': '10.0.0.0/24',
  'ip-cidr': '10.0.0.0/24',
  'ip-address': '10.0.0.1',
  'date-time': '2026-11-20T09:52:52Z',
  'iso-date-time': '2026-11-20T09:52:52Z',
  uri: 'http://127.0.0.1/',
  email: 'a@example.com',
};

function sampleText({ format, pattern, minLength = 1 }: Schema): string {
  if (pattern) return fc.sample(fc.stringMatching(new RegExp(pattern)), { numRuns: 1, seed: 1 })[0]!;
  if (format === undefined) return 'x'.repeat(minLength);
  if (formats[format] === undefined) throw new Error(`add an example of the format ${format} to \`formats\``);
  return formats[format];
}
