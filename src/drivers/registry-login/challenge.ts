/** Parses WWW-Authenticate headers. Source: RFC 9110, 11.6.1, and the token authentication of CNCF distribution. */

interface Challenge {
  scheme: 'basic' | 'bearer';
  /** Names in lower case. */
  parameters: Record<string, string>;
}

/** Returns the bearer challenge of a WWW-Authenticate header, else the basic challenge; null if it has neither. */
export function challengeOf(header: string | undefined): Challenge | null {
  const challenges = parse(header ?? '');
  return (
    challenges.find(({ scheme }) => scheme === 'bearer') ?? challenges.find(({ scheme }) => scheme === 'basic') ?? null
  );
}

/** A word with a value is a parameter of the preceding challenge; a word without one is the scheme of the next challenge. */
function parse(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  for (const [, word, quoted, bare] of header.matchAll(/([\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/g)) {
    const value = quoted?.replace(/\\(.)/g, '$1') ?? bare;
    if (value === undefined) challenges.push({ scheme: word!.toLowerCase() as Challenge['scheme'], parameters: {} });
    else if (challenges.length > 0) challenges.at(-1)!.parameters[word!.toLowerCase()] = value;
  }
  return challenges;
}
