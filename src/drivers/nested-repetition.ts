/**
 * Pure: finds the commonest cause of catastrophic backtracking in a regular expression, an unbounded repetition of a group
 * with an alternative that is only repetitions: `(a+)+`, `(.*)*`, `(\w+\s*)+`. `([a-z]+\.)+` is accepted, because the dot
 * separates the repetitions. This is advice for the author of the pattern; what protects the host are the limits of
 * haproxy/l7-policies.ts, which also hold for the patterns that this check accepts.
 */

/** `unbounded`: can repeat without a limit; `optional`: can also be empty. */
interface Repetition {
  unbounded: boolean;
  optional: boolean;
}

interface Group {
  start: number;
  /** Whether an item of the current alternative separates its repetitions. */
  separated: boolean;
  repeats: boolean;
  /** An earlier alternative is only repetitions. */
  risky: boolean;
}

const newGroup = (start: number): Group => ({ start, separated: false, repeats: false, risky: false });

/** Returns the repeated group, or null. An invalid pattern has any result. */
export function nestedRepetition(pattern: string): string | null {
  const open: Group[] = [newGroup(0)];
  let at = 0;
  while (at < pattern.length) {
    const group = open.at(-1)!;
    const character = pattern[at]!;
    if (character === '(') {
      open.push(newGroup(at));
      at += groupStart(pattern, at).length;
      continue;
    }
    if (character === '|') {
      Object.assign(group, { risky: isRisky(group), separated: false, repeats: false });
      at += 1;
      continue;
    }
    const closes = character === ')' && open.length > 1;
    const end = closes ? at + 1 : at + itemLength(pattern, at);
    const quantifier = quantifierAt(pattern, end);
    const { unbounded, optional } = repetitionOf(quantifier);
    if (closes && isRisky(group) && unbounded) return pattern.slice(group.start, end + quantifier.length);
    if (closes) open.pop();
    const owner = open.at(-1)!;
    // A group is an item of the group around it. A group that is only repetitions separates nothing.
    const repeats = unbounded || (closes && isRisky(group));
    if (repeats) owner.repeats = true;
    else if (!optional && !isAssertion(pattern, at)) owner.separated = true;
    at = end + quantifier.length;
  }
  return null;
}

function isRisky({ risky, repeats, separated }: Group): boolean {
  return risky || (repeats && !separated);
}

function groupStart(pattern: string, at: number): string {
  return /^\((\?(<?[=!]|[:>|]|P?<\w+>|'\w+'|[a-zA-Z-]+:?))?/.exec(pattern.slice(at))?.[0] ?? '(';
}

/** The length of an escape, a class or a character. */
function itemLength(pattern: string, at: number): number {
  if (pattern[at] === '\\') return 2;
  if (pattern[at] !== '[') return 1;
  return /^\[\^?\]?(\\.|\[:\w+:\]|[^\]\\])*\]/.exec(pattern.slice(at))?.[0].length ?? 1;
}

function isAssertion(pattern: string, at: number): boolean {
  return pattern[at] === '^' || pattern[at] === '$' || /^\\[bBAzZG]/.test(pattern.slice(at, at + 2));
}

function quantifierAt(pattern: string, at: number): string {
  return /^([*+?]|\{\d+(,\d*)?\})[?+]?/.exec(pattern.slice(at))?.[0] ?? '';
}

/** Possessive quantifiers do not backtrack. */
function repetitionOf(quantifier: string): Repetition {
  const unbounded = /^([*+]|\{\d+,\})\??$/.test(quantifier);
  return { unbounded, optional: /^([*?]|\{0+[,}])/.test(quantifier) };
}
