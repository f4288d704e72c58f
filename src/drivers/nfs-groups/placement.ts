/** Pure: which host takes a free group, and when a host hands one over. Every host decides for itself, by the same rules. */

export interface Placement {
  /** This host. */
  self: string;
  /** Hosts that may hold groups. */
  eligible: string[];
  /** All groups with the host that holds each; null: free. */
  holders: ReadonlyMap<string, string | null>;
}

/**
 * The hosts that should take a free group before this one: those that hold fewer groups; of several, the order depends on the
 * group, so that the groups of a host that died spread over the others. The host whose lock expired (`previous`) comes last.
 * Null: this host must not take it.
 */
export function hostsBefore(
  group: string,
  { self, eligible, holders }: Placement,
  previous: string | null,
): string[] | null {
  if (!eligible.includes(self)) return null;
  const names = [...eligible].sort();
  const first = [...holders.keys()].sort().indexOf(group) % names.length;
  const rotated = [...names.slice(first), ...names.slice(0, first)];
  const order = rotated.sort(
    (a, b) => Number(a === previous) - Number(b === previous) || countOf(a, holders) - countOf(b, holders),
  );
  return order.slice(0, order.indexOf(self));
}

/** Whether this host should hand a group over: another one holds at least two fewer. */
export function isOverloaded({ self, eligible, holders }: Placement): boolean {
  const own = countOf(self, holders);
  return eligible.some((name) => countOf(name, holders) <= own - 2);
}

function countOf(host: string, holders: Placement['holders']): number {
  return [...holders.values()].filter((holder) => holder === host).length;
}
