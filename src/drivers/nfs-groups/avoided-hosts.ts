/**
 * Hosts that did not take groups which they should have taken, or did not keep them: they cannot reach the cluster, or their
 * Ganesha does not start. Groups handed over to them would only interrupt clients.
 */

const FIRST_MS = 60_000;
const LAST_MS = 3_600_000;

export function avoidedHosts() {
  const avoided = new Map<string, { until: number; ms: number }>();
  return {
    /** Avoids a host for a while, longer each time. */
    add(host: string): void {
      const before = avoided.get(host);
      const now = performance.now();
      const isRepeated = before !== undefined && now < before.until + before.ms;
      const ms = isRepeated ? Math.min(before.ms * 2, LAST_MS) : FIRST_MS;
      avoided.set(host, { until: now + ms, ms });
    },
    has: (host: string) => performance.now() < (avoided.get(host)?.until ?? 0),
    /** Forgets hosts that have left: they begin again. */
    retain(hosts: string[]): void {
      for (const host of avoided.keys()) if (!hosts.includes(host)) avoided.delete(host);
    },
  };
}
