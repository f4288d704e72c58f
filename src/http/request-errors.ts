/**
 * All errors of a request that does not match its schemas. Fastify stops at the first invalid part of a request, and
 * the rules that no schema can express belong to services, which an invalid request does not reach. So the other parts are
 * validated here, and the rules of the operation (`bodyErrors`) examine the valid fields of the body.
 */
import type { FastifyRequest } from 'fastify';
import { type FieldError, maxErrors } from '../errors/catalogue.ts';
import type { RequestContext } from '../authz/actor.ts';
import type { IsInvalid } from '../errors/valid-fields.ts';
import type { Check, ValidationError } from './validation.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The rules of the body. An error of a field that is known to be invalid, or of the object that has it, is not reported. */
    bodyErrors?:
      | ((body: never, isInvalid: IsInvalid, params: never, by: RequestContext) => FieldError[] | Promise<FieldError[]>)
      | undefined;
  }
}

const parts = ['params', 'body', 'querystring'] as const;
type Part = (typeof parts)[number];

/** `error`: of an invalid part; absent if only a header is invalid. */
export async function errorsOf(request: FastifyRequest, error?: ValidationError): Promise<FieldError[]> {
  const found = { params: [], body: [], querystring: [] } as Record<Part, FieldError[]>;
  for (const part of error ? parts : []) {
    found[part] = part === error!.validationContext ? error!.errors : errorsOfPart(request, part);
  }
  const ofRules = await errorsOfRules(request, found);
  return [...found.params, ...found.body, ...ofRules, ...found.querystring, ...errorsOfIdempotencyKey(request)];
}

/** Only a POST of an authenticated caller has a key. */
export function errorsOfIdempotencyKey({ method, by, headers }: FastifyRequest): FieldError[] {
  const key = headers['idempotency-key'];
  if (method !== 'POST' || !by || key === undefined || (key.length > 0 && key.length <= 255)) return [];
  return [{ path: 'Idempotency-Key', message: 'must be 1 to 255 characters' }];
}

function errorsOfPart(request: FastifyRequest, part: Part): FieldError[] {
  const check = request.getValidationFunction(part) as unknown as Check | undefined;
  const result = check?.(part === 'querystring' ? request.query : request[part]) ?? true;
  return result === true ? [] : result.error.errors;
}

async function errorsOfRules(request: FastifyRequest, found: Record<Part, FieldError[]>): Promise<FieldError[]> {
  const { bodyErrors } = request.routeOptions.config;
  const { body } = request;
  const known = found.body;
  if (!bodyErrors || !isContainer(body) || known.some(({ path }) => path === '')) return [];
  // There are more invalid fields than errors list, so the rules could meet one.
  if (known.length >= maxErrors) return [];
  const valid = structuredClone(body);
  for (const { path } of known) if (removeField(valid, path.split('.'))) return [];
  const isInvalid: IsInvalid = (path) => known.some((error) => `${error.path}.`.startsWith(`${path}.`));
  const isKnown = ({ path }: FieldError) => isInvalid(path) || known.some((error) => path.startsWith(`${error.path}.`));
  const params = found.params.length === 0 ? request.params : {};
  const errors = await bodyErrors(valid as never, isInvalid, params as never, request.by);
  return errors.filter((error) => !isKnown(error));
}

/** Returns whether the container must be removed, too: a list with an invalid item. */
function removeField(container: object, [name, ...rest]: string[]): boolean {
  const fields = container as Record<string, unknown>;
  if (!Object.hasOwn(fields, name!)) return false;
  const value = fields[name!];
  const isRemoved = rest.length === 0 || (isContainer(value) && removeField(value, rest));
  if (!isRemoved || Array.isArray(container)) return isRemoved;
  delete fields[name!];
  return false;
}

function isContainer(value: unknown): value is object {
  return value !== null && typeof value === 'object';
}
