/** Finds the methods that a path supports, for the header `Allow` of 405. Runs only for requests that are refused. */
import type { FastifyRequest } from 'fastify';
import { ClientError } from '../errors/catalogue.ts';

interface Route {
  method: string;
  /** As Fastify writes it: `/cloud/v1/tasks/:task_id`. */
  path: string;
}

/**
 * 405 if the path has operations, but not with this method. The router may have taken the name of another operation for an ID, as
 * in `GET /cloud/v1/tasks/acknowledge`.
 */
export function methodNotAllowed({ method, url, server }: FastifyRequest): ClientError | null {
  const allowed = allowedMethods(server.declaredOperations, url);
  if (allowed.length === 0 || allowed.includes(method)) return null;
  const allow = allowed.join(', ');
  const message = `${method} is not supported at ${url.split('?')[0]}; supported: ${allow}`;
  return new ClientError('MethodNotAllowed', message, { headers: { allow } });
}

/**
 * Returns the methods of the route that matches a path, sorted; empty if none does. Of several matches the most specific one
 * counts, as for Fastify: `/cloud/v1/tasks/active` is not a task. `GET` includes `HEAD`.
 */
function allowedMethods(routes: readonly Route[], url: string): string[] {
  const segments = segmentsOf(url.split('?', 1)[0]!);
  const matching = routes.filter(({ path }) => matches(patternOf(path), segments));
  const [specific] = matching
    .map(({ path }) => path)
    .sort((one, other) => (specificity(one) < specificity(other) ? 1 : -1));
  const methods = matching.filter(({ path }) => path === specific).map(({ method }) => method);
  return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))].sort();
}

const patterns = new Map<string, string[]>();

/** The segments of the path of a route, which are computed once: every invalid request is compared with all routes. */
function patternOf(path: string): string[] {
  const known = patterns.get(path) ?? segmentsOf(path);
  patterns.set(path, known);
  return known;
}

function segmentsOf(path: string): string[] {
  return path.replace(/\/$/, '').split('/');
}

function matches(pattern: string[], segments: string[]): boolean {
  if (pattern.length !== segments.length) return false;
  return pattern.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]));
}

/** Sorts patterns by their first segment that differs: a name comes after a parameter. */
function specificity(path: string): string {
  return patternOf(path)
    .map((part) => (part.startsWith(':') ? '0' : '1'))
    .join('');
}
