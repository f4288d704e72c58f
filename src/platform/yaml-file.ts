/** Reads YAML files of the operator and checks them against a schema; errors name the line and the column. */
import { readFileSync } from 'node:fs';
import Ajv from 'ajv';
import type { Static, TSchema } from 'typebox';
import { Check } from 'typebox/schema';
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import type { FieldError } from '../errors/catalogue.ts';
import { describeKeywordError } from '../errors/keyword-message.ts';
import { ConfigurationFileError } from './configuration-file-error.ts';

/**
 * Writes the errors of an invalid file. Compiling the schemas of the shipped files takes 60 ms of CPU time, and Check 10 ms.
 * `verbose`: errors have their schema. The type checker checks our schemas: the meta-schema would take 50 ms of each start,
 * and optimizing code that runs once another 40 ms.
 */
const ajv = new Ajv.default({
  ...{ allErrors: true, strict: false, verbose: true, meta: false, validateSchema: false },
  code: { optimize: false },
});

/**
 * Reads and checks a file; `check` does what a schema cannot. A schema of a value may have a `rule`, which continues "must be "
 * in its errors.
 * @throws ConfigurationFileError with a line `file:line:column: path: message` for each error
 */
export function readYamlFile<T extends TSchema>(
  file: string,
  schema: T,
  check: (content: Static<T>) => FieldError[] = () => [],
): Static<T> {
  const lines = new LineCounter();
  const document = parseDocument(readText(file), { lineCounter: lines, prettyErrors: false });
  const errors = document.errors.map((error) => `${file}:${placeOf(lines, error.pos[0])}: ${error.message}`);
  if (errors.length === 0) {
    const content: unknown = document.toJS();
    const at = (path: string[], message: string) =>
      `${file}:${placeIn(document, lines, path)}: ${path.join('.')}: ${message}`;
    const validate = Check(schema, content) ? null : ajv.compile(schema);
    if (!validate || validate(content)) {
      const ruleErrors = check(content as Static<T>);
      if (ruleErrors.length === 0) return content as Static<T>;
      errors.push(...ruleErrors.map((error) => at(error.path.split('.'), error.message)));
    } else {
      for (const error of validate.errors ?? []) {
        const path = error.instancePath.split('/').slice(1);
        const rule = error.parentSchema?.rule as string | undefined;
        const { name, message } = describeKeywordError(error);
        const isOfRule = name === undefined && rule !== undefined;
        errors.push(at(name === undefined ? path : [...path, name], isOfRule ? `must be ${rule}` : message));
      }
    }
  }
  throw new ConfigurationFileError(errors.join('\n'));
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigurationFileError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function placeOf(lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset);
  return `${line}:${col}`;
}

/** Line and column of the innermost part of `path` that exists. */
function placeIn(document: Document, lines: LineCounter, path: string[]): string {
  for (let length = path.length; length >= 0; length--) {
    const node = document.getIn(path.slice(0, length).map(numberOrText), true);
    if (isNode(node) && node.range) return placeOf(lines, node.range[0]);
  }
  return '1:1';
}

function numberOrText(part: string): string | number {
  return /^\d+$/.test(part) ? Number(part) : part;
}
