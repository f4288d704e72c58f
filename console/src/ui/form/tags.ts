interface Tag {
  readonly key: string;
  readonly value: string;
  readonly read_only: boolean;
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
