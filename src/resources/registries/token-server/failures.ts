/**
 * Failed logins, counted on this server for a minute at a time, so that secrets cannot be guessed.
 *
 * Only an address that failed with a name is refused under that name: many registries have a user `ci`, and many clients
 * share the address of a proxy, and none of them must be locked out by the guesses of another.
 */
import type { Clock } from '../../../platform/clock.ts';

export const limits = {
  /** Failures of one name from one address. */
  pair: 20,
  /** Of all names from one address; of one name from all addresses. */
  address: 300,
  name: 3000,
};
const windowMs = 60_000;
const maxCounted = 100_000;

export function createFailures({ now }: Clock) {
  let began = 0;
  const counts = new Map<string, number>();
  const keys = (name: string, address: string) => ({
    pair: `pair ${name} ${address}`,
    address: `address ${address}`,
    name: `name ${name}`,
  });
  const count = (key: string) => counts.get(key) ?? 0;

  const startWindow = () => {
    const time = now().getTime();
    if (time >= began && time < began + windowMs) return;
    counts.clear();
    began = time;
  };

  return {
    /** Seconds until the next try; null when it may be made now. */
    retryAfter(name: string, address: string): number | null {
      startWindow();
      const of = keys(name, address);
      const failed = count(of.pair);
      const isOver = failed > 0 && (count(of.address) >= limits.address || count(of.name) >= limits.name);
      if (failed < limits.pair && !isOver) return null;
      return Math.max(1, Math.ceil((began + windowMs - now().getTime()) / 1000));
    },

    note(name: string, address: string): void {
      startWindow();
      for (const key of Object.values(keys(name, address))) {
        if (counts.has(key) || counts.size < maxCounted) counts.set(key, count(key) + 1);
      }
    },
  };
}
