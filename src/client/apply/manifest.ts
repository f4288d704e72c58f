/** Reads files of `apply` and validates them with the shapes of the API, before any request is sent. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { isMap, isNode, isPair, isScalar, isSeq, LineCounter, type Node, parseAllDocuments, type YAMLMap } from 'yaml';
import { usageError } from '../errors.ts';
import { referenceOf } from '../names.ts';
import { resolved, type Schema, table } from '../table.ts';
import { type Kind, kinds } from './kinds.ts';

export interface Resource {
  kind: Kind;
  name: string;
  /** Of the context, if absent. */
  project?: string;
  region?: string;
  /** The body of a creation; references may be names. */
  spec: Record<string, unknown>;
  /** `FILE:LINE:COLUMN` of a field, or of the resource. */
  at(field?: string): string;
}

/** A resource with the position of its name. */
type Placed = Resource & { offset: number };

interface PlacedError {
  offset: number;
  message: string;
}

const own = new Set(['kind', 'project', 'region']);

/** @throws CommandError that names every error with its line and column */
export function readManifest(file: string, text: string): Resource[] {
  const lineCounter = new LineCounter();
  const place = (offset: number) => {
    const { line, col } = lineCounter.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  const errors: PlacedError[] = [];
  const resources: Placed[] = [];
  for (const document of parseAllDocuments(text, { lineCounter, prettyErrors: false, merge: true })) {
    if (!('errors' in document)) continue;
    errors.push(...document.errors.map(({ pos, message }) => ({ offset: pos[0], message })));
    if (document.errors.length > 0 || document.contents === null) continue;
    // Aliases and merge keys become plain values, whose position is that of the alias.
    for (const node of isSeq(document.contents) ? document.contents.items : [document.contents]) {
      if (isScalar(node) && node.value === null) continue;
      const value = isNode(node) ? (node.toJS(document) as unknown) : undefined;
      const resource = readResource(node as Node, value, place, errors);
      if (resource) resources.push(resource);
    }
  }
  refuseDuplicates(resources, errors);
  if (errors.length > 0) {
    const sorted = errors.toSorted((a, b) => a.offset - b.offset);
    throw usageError(sorted.map(({ offset, message }) => `${place(offset)}: ${message}`).join('\n'));
  }
  return resources;
}

function readResource(
  node: Node,
  value: unknown,
  place: (offset: number) => string,
  errors: PlacedError[],
): Placed | undefined {
  const start = node.range?.[0] ?? 0;
  if (!isMap(node)) {
    errors.push({ offset: start, message: 'a resource must be a map with a kind' });
    return undefined;
  }
  const fields = value as Record<string, unknown>;
  const kind = kinds().get(String(fields['kind']));
  if (!kind) {
    const known = [...kinds().keys()].join(', ');
    const message = 'kind' in fields ? `unknown kind ${JSON.stringify(fields['kind'])}` : 'kind is required';
    errors.push({ offset: offsetOf(node, ['kind']), message: `${message}; known: ${known}` });
    return undefined;
  }
  const spec = Object.fromEntries(Object.entries(fields).filter(([name]) => !own.has(name)));
  const specErrors = errorsOf(kind, spec);
  for (const { path, message, isKey } of specErrors) errors.push({ offset: offsetOf(node, path, isKey), message });
  for (const name of ['project', 'region']) {
    if (name in fields && !['string', 'number'].includes(typeof fields[name])) {
      errors.push({ offset: offsetOf(node, [name]), message: `${name} must be an ID or a name` });
    }
  }
  if (specErrors.length > 0 || typeof spec['name'] !== 'string') return undefined;
  return {
    ...{ kind, name: spec['name'], spec },
    ...('project' in fields && { project: String(fields['project']) }),
    ...('region' in fields && { region: String(fields['region']) }),
    at: (field) => place(field === undefined ? start : offsetOf(node, [field])),
    offset: offsetOf(node, ['name']),
  };
}

function refuseDuplicates(resources: Placed[], errors: PlacedError[]): void {
  const seen = new Map<string, Placed>();
  for (const resource of resources) {
    const { kind, name, project, region } = resource;
    const key = JSON.stringify([kind.name, name, project, region]);
    const first = seen.get(key);
    if (!first) seen.set(key, resource);
    else {
      const message = `${kind.name} ${name} is already described at ${first.at('name')}`;
      errors.push({ offset: resource.offset, message });
    }
  }
}

/** The position of the value at the path, or of its key; of the nearest parent if the path does not exist. */
function offsetOf(node: YAMLMap, path: string[], isKey = false): number {
  let current: unknown = node;
  let offset = node.range?.[0] ?? 0;
  for (const [depth, step] of path.entries()) {
    if (isMap(current)) {
      const pair = current.items.find((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === step);
      if (!pair) return offset;
      const target = isKey && depth === path.length - 1 ? pair.key : (pair.value ?? pair.key);
      offset = (target as Node).range?.[0] ?? offset;
      current = pair.value;
    } else if (isSeq(current)) {
      current = current.items[Number(step)];
      offset = (current as Node | undefined)?.range?.[0] ?? offset;
    } else return offset;
  }
  return offset;
}

interface SpecError {
  path: string[];
  message: string;
  isKey?: boolean;
}

function errorsOf(kind: Kind, spec: Record<string, unknown>): SpecError[] {
  const attempts = variantsOf(kind.create.body!).map((schema) => {
    const validate = validatorOf(schema);
    validate(spec);
    return relevant(validate.errors ?? [], spec);
  });
  // The errors of the variant that fits best.
  return attempts.sort((a, b) => weight(a) - weight(b))[0]!;
}

/** A discriminator that does not match is a stronger sign than any other error. */
function weight(errors: SpecError[]): number {
  return errors.reduce((sum, { message }) => sum + (message.includes('must be one of') ? 100 : 1), 0);
}

function variantsOf(schema: Schema): Schema[] {
  const { anyOf } = resolved(schema);
  return anyOf ? anyOf.flatMap(variantsOf) : [schema];
}

const validators = new Map<Schema, ValidateFunction>();
/** Formats are left to the server: a name is accepted where it has an id. The schemas are generated, so they are not checked. */
const ajv = new Ajv({
  allErrors: true,
  strict: false,
  validateFormats: false,
  verbose: true,
  meta: false,
  validateSchema: false,
});

function validatorOf(schema: Schema): ValidateFunction {
  const known = validators.get(schema) ?? ajv.compile({ ...schema, schemas: table.schemas });
  validators.set(schema, known);
  return known;
}

function relevant(errors: ErrorObject[], spec: unknown): SpecError[] {
  const isSamePlace = (one: ErrorObject, other: ErrorObject) =>
    one.instancePath === other.instancePath && one.propertyName === other.propertyName;
  const isAlsoAt = (error: ErrorObject, isOther: (other: ErrorObject) => boolean) =>
    errors.some((other) => other !== error && isSamePlace(other, error) && isOther(other));
  const specErrors = errors
    // Reported together with the errors of each variant.
    .filter(({ keyword }) => keyword !== 'anyOf' && keyword !== 'propertyNames' && keyword !== 'if')
    // Of a field that may be null, the error of the other type says more.
    .filter((error) => error.params['type'] !== 'null' || !isAlsoAt(error, ({ keyword }) => keyword !== 'anyOf'))
    // Text that is too long does not match its pattern, either.
    .filter((error) => error.keyword !== 'pattern' || !isAlsoAt(error, ({ keyword }) => keyword === 'maxLength'))
    .map((error) => specError(error))
    .filter(({ path }) => !isName(path, spec));
  const seen = new Set<string>();
  return specErrors.filter(({ path, message }) => {
    const key = JSON.stringify([path, message]);
    return !seen.has(key) && seen.add(key);
  });
}

function isName(path: string[], spec: unknown): boolean {
  const field = path.findLast((step) => !/^\d+$/.test(step)) ?? '';
  const value = path.reduce<unknown>((current, step) => (current as Record<string, unknown> | undefined)?.[step], spec);
  return typeof value === 'string' && value !== '' && referenceOf(field) !== undefined;
}

function specError({ keyword, instancePath, params, propertyName, message = '' }: ErrorObject): SpecError {
  const parent = instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const isKey = propertyName !== undefined;
  const path = isKey ? [...parent, propertyName] : parent;
  const subject = path.join('.');
  const given = params as Record<string, string>;
  switch (keyword) {
    case 'required':
      return { path, message: `${[...path, given['missingProperty']!].join('.')} is required` };
    case 'additionalProperties': {
      const name = given['additionalProperty']!;
      return { path: [...path, name], message: `unknown field ${[...path, name].join('.')}`, isKey: true };
    }
    case 'enum':
      return { path, message: `${subject} must be one of: ${(params['allowedValues'] as unknown[]).join(', ')}` };
    case 'const':
      return { path, message: `${subject} must be one of: ${String(params['allowedValue'])}` };
    case 'type': {
      const types = ([params['type']].flat() as string[]).filter((type) => type !== 'null');
      return { path, message: `${subject} must be ${types.join(' or ') || 'null'}` };
    }
    case 'pattern': {
      const rule = table.rules[given['pattern']!];
      return { path, message: `${subject} ${rule === undefined ? message : `must be ${rule}`}`, isKey };
    }
    default:
      return { path, message: `${subject} ${message}`, isKey };
  }
}
