/**
 * Bounds on the work of a validator that reports all errors.
 *
 * Invariant: lists longer than `maxItems` are not looked into, and the items of a list yield some `maxExamined` errors.
 */
import type Ajv from 'ajv';
import type { AnySchema, ErrorObject, ValidateFunction } from 'ajv';

/** Errors that are examined for those to report. */
export const maxExamined = 1000;

type ValidateItems = { errors?: Partial<ErrorObject>[] } & ((
  list: unknown[],
  context?: { instancePath: string; rootData: unknown },
) => boolean);

/** Replaces the keyword `items`. The library's own has no limit, and ignores `maxItems`. */
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

/** Longer text matches no pattern. Schemas that have a pattern bound their text below it. */
const maxPatternText = 1000;

/** Regular expressions whose time is bounded for patterns that take time growing with the square of the text. */
export const boundedPatterns = Object.assign(
  (pattern: string, flags: string) => {
    const expression = new RegExp(pattern, flags);
    const test = (text: string) => text.length <= maxPatternText && expression.test(text);
    // The validator tells patterns apart by their text.
    return { test, toString: () => String(expression) };
  },
  { code: 'boundedPatterns' },
);
