/** Finds what a person most likely meant by a misspelled name. */

/** Up to three of `known`: those that contain the name or are contained in it, and those a few typing errors away. */
export function closest(name: string, known: readonly string[]): string[] {
  const most = Math.max(2, Math.floor(name.length / 4));
  return known
    .map((candidate) => {
      const isPart = name.length > 2 && (candidate.includes(name) || name.includes(candidate));
      return { candidate, distance: isPart ? 0 : editDistance(name, candidate) };
    })
    .filter(({ distance }) => distance <= most)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ candidate }) => candidate);
}

/** For the end of a message; empty if nothing is close. */
export function suggestion(name: string, known: readonly string[]): string {
  const [found] = closest(name, known);
  return found === undefined ? '' : `; did you mean ${found}?`;
}

/** Levenshtein distance: insertions, deletions and substitutions of characters. */
function editDistance(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(above[j]! + 1, row[j - 1]! + 1, substitution));
    }
    above = row;
  }
  return above[b.length]!;
}
