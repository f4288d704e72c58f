import type { components } from '../../api/openapi.d.ts';

type Tag = components['schemas']['Tag'];

/** For the filter of a list: `env=test team=web`. */
export function tagsText(tags: readonly Tag[]): string {
  return tags.map(({ key, value }) => `${key}=${value}`).join(' ');
}

/** The tags that a user may change, as a map. */
export function tagsForEdit(tags: readonly Tag[]): Record<string, string> {
  return Object.fromEntries(tags.filter((tag) => !tag.read_only).map(({ key, value }) => [key, value]));
}

/** The difference as a JSON Merge Patch: removed tags are null. Undefined when nothing changed. */
export function editedTags(before: readonly Tag[], after: unknown): Record<string, string | null> | undefined {
  const old = tagsForEdit(before);
  const next = (after ?? {}) as Record<string, string>;
  const removed = Object.keys(old).filter((key) => !(key in next));
  const changed = Object.entries(next).filter(([key, value]) => old[key] !== value);
  if (removed.length === 0 && changed.length === 0) return undefined;
  return Object.fromEntries([...removed.map((key) => [key, null] as const), ...changed]);
}

/** The part of an update that changes name and tags: only what changed, so that a change by another client is not undone. */
export function editedNameAndTags(
  before: { readonly name: string; readonly tags: readonly Tag[] },
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const tags = editedTags(before.tags, values['tags']);
  return {
    ...(values['name'] === before.name ? {} : { name: values['name'] }),
    ...(tags === undefined ? {} : { tags }),
  };
}
