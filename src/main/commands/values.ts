/** Values of options, by the rules of the API. */
import type { TSchema } from 'typebox';
import { instantOf } from '../../platform/clock.ts';

/** The forms that `dateOf` accepts, for errors. */
export const dateForms = 'a date such as 2030-01-01 or 2030-01-01T12:00:00Z';

/** A date, or a date and time as in the API; without a zone it is UTC. Null for other text. */
export async function dateOf(text: string): Promise<Date | null> {
  const time = text.replace(/^\d{4}-\d\d-\d\d$/, '$&T00:00:00');
  const error = await errorOf(time, { type: 'string', format: 'iso-date-time' });
  return error === undefined ? instantOf(time) : null;
}

/** The error of the API for the value of a field; undefined if it is valid. */
export async function errorOf(value: unknown, schema: TSchema): Promise<string | undefined> {
  const { compileValidator } = await import('../../http/validation.ts');
  const result = compileValidator({ schema, httpPart: 'body' })(value);
  return result === true ? undefined : result.error.errors[0]!.message;
}
