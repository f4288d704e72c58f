import type { components } from '../../api/openapi.d.ts';
import type { Values } from './use-form.ts';

type Tag = components['schemas']['Tag'];

/** The tags that a user may change, as a map. */
export function tagsForEdit(tags: readonly Tag[]): Record<string, string> {
  return Object.fromEntries(tags.filter((tag) => !tag.read_only).map(({ key, value }) => [key, value]));
}

/** The difference as a JSON Merge Patch: removed tags are null. Undefined when nothing changed. */
export function editedTags(before: readonly Tag[], after: unknown): Record<string, string | null> | undefined {
  const old = tagsForEdit(before);
  const next = (after ?? {}) as Record<string, string>;
  const removed = Object.keys(old).filter((key) => !Object.hasOwn(next, key));
  const changed = Object.entries(next).filter(([key, value]) => old[key] !== value);
  if (removed.length === 0 && changed.length === 0) return undefined;
  return Object.fromEntries([...removed.map((key) => [key, null] as const), ...changed]);
}

/** What an edit sends: the fields that differ, so that changes of others by another client are not undone. */
export function changesOf(before: object, after: Values): Values {
  const old = before as Values;
  return Object.fromEntries(
    Object.entries(after).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(old[name])),
  );
}

/** The same for name and tags. */
export function editedNameAndTags(
  before: { readonly name: string; readonly tags: readonly Tag[] },
  values: Values,
): Values {
  const tags = editedTags(before.tags, values['tags']);
  return { ...changesOf(before, { name: values['name'] }), ...(tags === undefined ? {} : { tags }) };
}
