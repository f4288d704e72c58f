/**
 * What a response no longer has, one line each. New fields are not differences: clients ignore them. Items with an id are
 * compared in any order.
 */
export function differences(before: unknown, after: unknown, path = ''): string[] {
  if (Array.isArray(before) && Array.isArray(after)) {
    if (before.length !== after.length) return [`${path} has ${after.length} instead of ${before.length} items`];
    const [old, now] = hasIds(before) && hasIds(after) ? [byId(before), byId(after)] : [before, after];
    return old.flatMap((each, i) => differences(each, now[i], `${path}[]`));
  }
  if (isObject(before) && isObject(after)) {
    return Object.entries(before).flatMap(([key, value]) =>
      key in after ? differences(value, after[key], `${path}.${key}`) : [`${path}.${key} is missing`],
    );
  }
  return Object.is(before, after) ? [] : [`${path} was ${JSON.stringify(before)} and is ${JSON.stringify(after)}`];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const hasIds = (items: unknown[]): items is { id: unknown }[] => items.every((item) => isObject(item) && 'id' in item);

const byId = (items: { id: unknown }[]) => [...items].sort((a, b) => String(a.id).localeCompare(String(b.id)));
