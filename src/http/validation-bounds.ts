/**
 * Bounds on the work of a validator that reports all errors.
 *
 * Invariant: the items of a list longer than `maxItems` are not validated, and a list yields about `maxExamined` errors at
 * most.
 */
import type Ajv from 'ajv';
import type { AnySchema, ErrorObject, ValidateFunction } from 'ajv';

/** The number of errors that are examined to select the reported ones. */
export const maxExamined = 1000;

type ValidateItems = { errors?: Partial<ErrorObject>[] } & ((
  list: unknown[],
  context?: { instancePath: string; rootData: unknown },
) => boolean);

/** Replaces the keyword `items`: the one of the library has no limit and ignores `maxItems`. */
export function boundItems(ajv: Ajv.default): void {
  ajv.removeKeyword('items');
  ajv.addKeyword({
    keyword: 'items',
    type: 'array',
    before: 'uniqueItems',
    errors: 'full',
    compile(schema: AnySchema, parent): ValidateItems {
      const maxItems: number = parent['maxItems'] ?? Number.POSITIVE_INFINITY;
      const validate: ValidateFunction = ajv.compile(schema);
      const validateItems: ValidateItems = (list, context) => {
        if (list.length > maxItems) return true;
        const errors: ErrorObject[] = [];
        const { instancePath = '', rootData = list } = context ?? {};
        for (let i = 0; i < list.length && errors.length < maxExamined; i++) {
          const at = { instancePath: `${instancePath}/${i}`, parentData: list, parentDataProperty: i, rootData };
          if (!validate(list[i], at as never)) errors.push(...validate.errors!);
        }
        validateItems.errors = errors;
        return errors.length === 0;
      };
      return validateItems;
    },
  });
}

/** Longer text matches no pattern. Schemas with a pattern limit their text to less. */
const maxPatternText = 1000;

/** Bounds the time of regular expressions, some of which take quadratic time. */
export const boundedPatterns = Object.assign(
  (pattern: string, flags: string) => {
    const expression = new RegExp(pattern, flags);
    const test = (text: string) => text.length <= maxPatternText && expression.test(text);
    // The validator distinguishes patterns by their text.
    return { test, toString: () => String(expression) };
  },
  { code: 'boundedPatterns' },
);
