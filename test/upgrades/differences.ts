/**
 * What a response lacks, one line each. New fields are not differences: clients ignore them. Nor is the ID of the
 * resource in `data` of a task, which was null. Items with an id are compared in any order.
 */
export function differences(before: unknown, after: unknown, path = ''): string[] {
  if (Array.isArray(before) && Array.isArray(after)) {
    if (before.length !== after.length) return [`${path} has ${after.length} instead of ${before.length} items`];
    const [old, now] = hasIds(before) && hasIds(after) ? [byId(before), byId(after)] : [before, after];
    return old.flatMap((each, i) => differences(each, now[i], `${path}[]`));
  }
  if (isObject(before) && isObject(after)) {
    return Object.entries(before).flatMap(([key, value]) => {
      if (!(key in after)) return [`${path}.${key} is missing`];
      return isNamedResource(before, key, after) ? [] : differences(value, after[key], `${path}.${key}`);
    });
  }
  return Object.is(before, after) ? [] : [`${path} was ${JSON.stringify(before)} and is ${JSON.stringify(after)}`];
}

/** Whether `data` of a task was null and is the ID of its resource and nothing else. */
function isNamedResource(before: Record<string, unknown>, key: string, after: Record<string, unknown>): boolean {
  const data = after[key];
  if (key !== 'data' || before[key] !== null || !('task_type' in after) || !isObject(data)) return false;
  return Object.keys(data).length === 1 && Object.values(data)[0] === after['resource_id'];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const hasIds = (items: unknown[]): items is { id: unknown }[] => items.every((item) => isObject(item) && 'id' in item);

const byId = (items: { id: unknown }[]) => [...items].sort((a, b) => String(a.id).localeCompare(String(b.id)));
