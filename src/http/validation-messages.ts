/** Describes the errors of the validator: each error of a field once, in plain words. */
import type { ErrorObject } from 'ajv';
import { type FieldError, maxErrors } from '../errors/catalogue.ts';
import { describeKeywordError } from '../errors/keyword-message.ts';
import { formats } from './formats.ts';
import { ruleOf } from './patterns.ts';
import { maxExamined } from './validation-bounds.ts';

/** In two passes, because the number of errors grows with the body. */
export function describe(found: ErrorObject[]): FieldError[] {
  const errors = found.slice(0, maxExamined);
  const keywords = new Map<string, Set<string>>();
  for (const error of errors) {
    const value = placeOf(error);
    keywords.set(value, (keywords.get(value) ?? new Set()).add(error.keyword));
  }
  const described = new Map<string, FieldError>();
  for (const error of errors) {
    if (described.size === maxErrors) break;
    if (isImplied(error, keywords.get(placeOf(error))!)) continue;
    const field = fieldError(error);
    const key = `${field.path} ${field.message}`;
    if (!described.has(key)) described.set(key, field);
  }
  return [...described.values()];
}

/** Of the value that is invalid, or of the key. */
function placeOf({ instancePath, propertyName }: ErrorObject): string {
  return propertyName === undefined ? instancePath : `${instancePath} ${propertyName}`;
}

/** Whether another error of the value says as much. `others`: the keywords that the value violates. */
function isImplied({ keyword }: ErrorObject, others: Set<string>): boolean {
  // A property name reports itself and then its map.
  if (keyword === 'if' || keyword === 'propertyNames') return true;
  // The valid values have the type.
  if (keyword === 'type') return others.has('const') || others.has('enum');
  // Text that is too long fails its pattern and format, too.
  return (keyword === 'pattern' || keyword === 'format') && others.has('maxLength');
}

function fieldError(error: ErrorObject): FieldError {
  const field = fieldErrorOf(error);
  return error.propertyName === undefined ? field : { ...field, message: `the key ${field.message}` };
}

function fieldErrorOf(error: ErrorObject): FieldError {
  const base = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const at = (name?: string) => [...base, ...(name === undefined ? [] : [name])].join('.');
  switch (error.keyword) {
    case 'format':
      return { path: at(), message: `must be ${formats[error.params.format]?.description ?? error.params.format}` };
    case 'pattern': {
      const rule = ruleOf(error.params.pattern);
      return { path: at(error.propertyName), message: rule === undefined ? error.message! : `must be ${rule}` };
    }
    default: {
      const { name = error.propertyName, message } = describeKeywordError(error);
      return { path: at(name), message };
    }
  }
}
