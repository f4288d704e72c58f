import { useEffect, useState } from 'react';
import type { LoadBalancer } from './data.ts';

type Stats = NonNullable<LoadBalancer['stats']>;
export type Sample = Stats & { readonly at: number };

/** An hour of readings, one every 10 seconds. */
const MAX_SAMPLES = 360;

/** The readings of a load balancer since the component was mounted. `at`: milliseconds since 1970. */
export function useSamples(id: string, at: number, stats: Stats | null): readonly Sample[] {
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  useEffect(() => setSamples([]), [id]);
  useEffect(() => {
    if (!stats) return;
    const next = { ...stats, at };
    setSamples((known) => [...known.filter((each) => each.at < at), next].slice(-MAX_SAMPLES));
  }, [id, at, stats]);
  return samples;
}

/** The change of a counter per second since the reading before; null at the first one, and where the counter fell. */
export function ratesOf(samples: readonly Sample[], name: 'total_connections' | 'request_errors'): (number | null)[] {
  return samples.map((sample, index) => {
    const before = samples[index - 1];
    if (!before || sample[name] < before[name]) return null;
    return (sample[name] - before[name]) / ((sample.at - before.at) / 1000);
  });
}
