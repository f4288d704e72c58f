/** The regular expressions of request schemas, with what they require in words, for errors. */

const rules = new Map<string, string>();

/** Returns the expression, and keeps its rule: what continues "must be ", such as `3 to 63 letters`. */
export function pattern(source: string, rule: string): string {
  rules.set(source, rule);
  return source;
}

/** The rule of an expression; undefined if it has none. */
export function ruleOf(source: string): string | undefined {
  return rules.get(source);
}
