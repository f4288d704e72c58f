/**
 * Notices servers that are stuck or were fenced, and has them started again: neither ends by itself. Gives up a group whose server
 * has ended and cannot be started again, for example on a full disk: another host may start it. Neither while the cluster is
 * away: that is why they do not respond or start.
 */
import type { Logger } from '../../platform/log.ts';
import { succeeds } from '../../platform/succeeds.ts';
import type { Tenure } from './tenure.ts';

const PROBE_EVERY_MS = 1000;
const FAILED_PROBES = 2;
/** A start takes seconds. */
const PROBES_DOWN = 30;
/** When the cluster is back, metadata servers may still have to recover their sessions. */
const PROBES_AFTER_OUTAGE = 5;

/**
 * A share that responded since the last start and stops responding is a reason for a restart. One that never responded is not:
 * its storage may be missing.
 */
export function keepHealthy(
  tenure: Tenure,
  wanted: ReadonlyMap<string, unknown>,
  { confirm, log }: { confirm(): Promise<void>; log: Logger },
): void {
  let failed = 0;
  /** Probes since the server has ended. */
  let down = 0;
  /** Whether the cluster was away at the last probe that failed. */
  let isAway = false;
  const isClusterAway = async (silent: string[]): Promise<boolean> => {
    try {
      await tenure.requireFencing();
      return false;
    } catch (err) {
      if (!isAway)
        log.warn({ silent, err }, 'an NFS server does not respond, and is not restarted because the cluster is away');
      return true;
    }
  };
  tenure.every(PROBE_EVERY_MS, async () => {
    const { server, healthy } = tenure;
    if (!server.isUp()) {
      healthy.clear();
      failed = 0;
      down += 1;
      if (down < PROBES_DOWN) return;
      down = 0;
      if (!(await succeeds(tenure.requireFencing()))) return;
      await tenure.end('its server cannot be started again');
      return;
    }
    down = 0;
    const responding = await server.probe().catch(() => new Set<string>());
    const silent = [...healthy].filter((id) => wanted.has(id) && !responding.has(id));
    const isDown = responding.size === 0 && wanted.size > 0;
    failed = silent.length > 0 || isDown ? failed + 1 : 0;
    for (const id of responding) healthy.add(id);
    // Waits for reloads, which must not delay probes. It is repeated after the next probe.
    confirm().catch((err: unknown) => log.warn({ err }, 'cannot record which shares respond'));
    if (failed === 0) isAway = false;
    if (failed < FAILED_PROBES && !isAway) return;
    const wasAway = isAway;
    isAway = await isClusterAway(silent);
    if (isAway || wasAway) {
      failed = -PROBES_AFTER_OUTAGE;
      return;
    }
    log.error({ silent }, 'restarting an NFS server that does not respond correctly');
    healthy.clear();
    failed = 0;
    server.restart();
  });
}
