/** Messages for invalid values, by the keyword of JSON Schema, in place of those of the validator. */

export const typeNames: Record<string, string> = {
  array: 'a list',
  boolean: 'true or false',
  integer: 'an integer',
  null: 'null',
  number: 'a number',
  object: 'an object',
  string: 'a string',
};

const bounds: Record<string, string> = {
  minimum: 'at least',
  maximum: 'at most',
  exclusiveMinimum: 'greater than',
  exclusiveMaximum: 'less than',
};

const units: Record<string, [singular: string, plural: string]> = {
  Length: ['character', 'characters'],
  Items: ['item', 'items'],
  Properties: ['entry', 'entries'],
};

/** An error of the validator. */
interface KeywordError {
  keyword: string;
  params: Record<string, unknown>;
  message?: string;
}

/** `name`: the field of the value that is invalid; absent if the value itself is. */
export function describeKeywordError(error: KeywordError): { name?: string; message: string } {
  const { keyword, params } = error;
  switch (keyword) {
    case 'required':
      return { name: String(params['missingProperty']), message: 'is required' };
    case 'additionalProperties':
    case 'unevaluatedProperties':
      return { name: String(params['additionalProperty']), message: 'is not a known field' };
    case 'uniqueItems': {
      // Which of the two is the first one depends on the type of the items.
      const { i, j } = params as { i: number; j: number };
      return { name: String(Math.max(i, j)), message: `repeats item ${Math.min(i, j)}` };
    }
    default:
      return { message: keywordMessage(error) };
  }
}

/** Continues the name of the field: `must have at most 10 items`. */
function keywordMessage({ keyword, params, message = 'is invalid' }: KeywordError): string {
  const { allowedValue, allowedValues, limit, type } = params;
  if (keyword === 'enum') return `must be ${oneOf(allowedValues as unknown[])}`;
  if (keyword === 'const') return `must be ${show(allowedValue)}`;
  if (keyword === 'type')
    return `must be ${orList([type].flat().map((name) => typeNames[String(name)] ?? String(name)))}`;
  if (bounds[keyword]) return `must be ${bounds[keyword]} ${limit}`;
  const unit = units[keyword.slice(3)];
  if (!unit) return message;
  return `must have ${keyword.startsWith('min') ? 'at least' : 'at most'} ${limit} ${unit[limit === 1 ? 0 : 1]}`;
}

/** The values of an enumeration. */
export function oneOf(values: unknown[]): string {
  return values.length === 1 ? show(values[0]) : `one of ${values.map(show).join(', ')}`;
}

/** A value as JSON. */
export function show(value: unknown): string {
  return JSON.stringify(value);
}

/** `a`, `a or b`, `a, b or c`. */
export function orList(texts: string[]): string {
  return texts.length < 2 ? texts.join() : `${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`;
}
