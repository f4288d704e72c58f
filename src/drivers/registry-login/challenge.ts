export interface Challenge {
  scheme: 'basic' | 'bearer';
  /** Names in lower case. */
  parameters: Record<string, string>;
}

/** The first challenge of a WWW-Authenticate header that registries use, a token before a password; null when there is none. */
export function challengeOf(header: string | undefined): Challenge | null {
  const challenges = parse(header ?? '');
  return challenges.find(({ scheme }) => scheme === 'bearer') ?? challenges.find(isBasic) ?? null;
}

function isBasic({ scheme }: Challenge): boolean {
  return scheme === 'basic';
}

/** A word, and then either a value (a parameter of the challenge before) or none (the scheme of the next one). */
function parse(header: string): Challenge[] {
  const challenges: Challenge[] = [];
  for (const [, word, quoted, bare] of header.matchAll(/([\w-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+)))?/g)) {
    const value = quoted?.replace(/\\(.)/g, '$1') ?? bare;
    if (value === undefined) challenges.push({ scheme: word!.toLowerCase() as Challenge['scheme'], parameters: {} });
    else if (challenges.length > 0) challenges.at(-1)!.parameters[word!.toLowerCase()] = value;
  }
  return challenges;
}
