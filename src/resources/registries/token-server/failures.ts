/**
 * Counts failed logins in this process per minute, so that secrets cannot be guessed.
 *
 * Only an address that has failed with a name is refused for that name: many registries have a user `ci`, and many clients
 * share the address of a proxy; the guesses of one must not lock out the others.
 */
import type { Clock } from '../../../platform/clock.ts';
import { sourceOf } from '../../../platform/network-address.ts';

export const limits = {
  /** Failures of a name from an address. */
  pair: 20,
  /** Failures of all names from an address, and of a name from all addresses. */
  address: 300,
  name: 3000,
};
const windowMs = 60_000;
/**
 * Then the older ones are forgotten: a flood of names permits more guesses of a name that did not fail meanwhile, but each time
 * it takes thousands of logins. If new ones were not counted, one flood would permit any number of guesses in its minute.
 */
const maxCounted = 50_000;

export function createFailures({ now }: Clock) {
  let began = 0;
  let counts = new Map<string, number>();
  let older = new Map<string, number>();
  const keys = (name: string, address: string) => {
    const source = sourceOf(address);
    return { pair: `pair ${name} ${source}`, address: `address ${source}`, name: `name ${name}` };
  };
  const count = (key: string) => counts.get(key) ?? older.get(key) ?? 0;

  const startWindow = () => {
    const time = now().getTime();
    if (time >= began && time < began + windowMs) return;
    counts.clear();
    older.clear();
    began = time;
  };

  return {
    /** Units: seconds. Null when a login may be attempted now. */
    retryAfter(name: string, address: string): number | null {
      startWindow();
      const of = keys(name, address);
      const failed = count(of.pair);
      const isOver = failed > 0 && (count(of.address) >= limits.address || count(of.name) >= limits.name);
      if (failed < limits.pair && !isOver) return null;
      return Math.max(1, Math.ceil((began + windowMs - now().getTime()) / 1000));
    },

    /** One failed request counts once for its address, and once for each of these names. */
    record(names: string[], address: string): void {
      startWindow();
      const failed = new Set(names.flatMap((name) => Object.values(keys(name, address))));
      for (const key of failed) counts.set(key, count(key) + 1);
      if (counts.size >= maxCounted) [older, counts] = [counts, new Map()];
    },
  };
}
