/** Finds the methods that a path supports, for the header `Allow` of 405. Runs only for requests without a route. */

interface Route {
  method: string;
  /** As Fastify writes it: `/cloud/v1/tasks/:task_id`. */
  path: string;
}

/**
 * Returns the methods of the route that matches a path, sorted; empty if none does. Of several matches the most specific one
 * counts, as for Fastify: `/cloud/v1/tasks/active` is not a task. `GET` includes `HEAD`.
 */
export function allowedMethods(routes: readonly Route[], url: string): string[] {
  const segments = segmentsOf(url.split('?', 1)[0]!);
  const matching = routes.filter(({ path }) => matches(segmentsOf(path), segments));
  const [specific] = matching
    .map(({ path }) => path)
    .sort((one, other) => (specificity(one) < specificity(other) ? 1 : -1));
  const methods = matching.filter(({ path }) => path === specific).map(({ method }) => method);
  return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))].sort();
}

function segmentsOf(path: string): string[] {
  return path.replace(/\/$/, '').split('/');
}

function matches(pattern: string[], segments: string[]): boolean {
  if (pattern.length !== segments.length) return false;
  return pattern.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]));
}

/** Sorts patterns by their first segment that differs: a name comes after a parameter. */
function specificity(pattern: string): string {
  return segmentsOf(pattern)
    .map((part) => (part.startsWith(':') ? '0' : '1'))
    .join('');
}
