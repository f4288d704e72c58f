/**
 * File shares served over NFS: puts the parts together. What is done to a share is in shares.ts.
 *
 * How it fails: a share whose image cannot be mounted at the start is left out of the exports and makes the status
 * unhealthy; its next `apply` tries again. The others are served.
 */
import type { Logger } from 'pino';
import { hostError, refuseAborted } from '../command.ts';
import type { DriverStatus } from '../driver.ts';
import type { FileShareDriver } from '../file-share.ts';
import { limited, oneAtATime } from '../turns.ts';
import { findGanesha, type GaneshaFinding } from './detect.ts';
import { directoryStorage } from './directories.ts';
import { imageStorage } from './images.ts';
import { createJail } from './jail.ts';
import { layoutOf } from './layout.ts';
import { nfsServer } from './server.ts';
import { applyShare, bringBack, gather, renderShares, type Shares, takeAway } from './shares.ts';
import { exportIds } from './specs.ts';

export interface GaneshaDriverOptions {
  dataDir: string;
  /** The name or address that clients mount from. */
  host: string;
  port: number;
  mountPort: number;
  /** Whether NFSv3 is served as well as NFSv4. */
  version3: boolean;
  log: Logger;
  /** What the host can do; looked up when it is not given. */
  finding?: GaneshaFinding;
}

export interface GaneshaDriver extends FileShareDriver {
  /** Ends without disturbing anybody: Ganesha and the mounts stay, and the next process adopts them. */
  release(): Promise<void>;
}

const PREPARED_AT_A_TIME = 4;

export function createGaneshaDriver(options: GaneshaDriverOptions): GaneshaDriver {
  const { log, finding = findGanesha() } = options;
  const shares = sharesFor(options, finding);
  const { server, storage } = shares;
  const inTurn = oneAtATime();

  async function stop(): Promise<void> {
    await server.stop();
    await storage.close();
  }

  return {
    name: 'ganesha',
    real: true,
    status: () => statusOf(finding, shares),
    async start() {
      try {
        await bringBack(shares);
      } catch (err) {
        await stop().catch((second: unknown) => log.error({ err: second }, 'clearing up after a failed start failed'));
        throw hostError(`file shares cannot be served: ${(err as Error).message}`, err);
      }
    },
    stop,
    release: server.release,
    apply: (desired, signal) => guarded(inTurn(desired.id, () => applyShare(shares, desired, signal))),
    async remove(id, signal) {
      refuseAborted(signal);
      await guarded(inTurn(id, () => takeAway(shares, id, { aside: false })));
    },
    quarantine: (id) => guarded(inTurn(id, () => takeAway(shares, id, { aside: true }))),
    list: async () => [...new Set([...shares.specs.keys(), ...(await storage.list())])].sort(),
  };
}

function sharesFor(options: GaneshaDriverOptions, finding: GaneshaFinding): Shares {
  const { dataDir, host, log } = options;
  const { programs, sizeEnforced } = finding;
  if (!programs) throw new Error(finding.detail);
  const layout = layoutOf(dataDir);
  // Plain folders are where nothing can be mounted.
  const jail = sizeEnforced ? createJail(layout) : null;
  const shares: Shares = {
    layout,
    host,
    log,
    storage: jail ? imageStorage(layout, jail, log) : directoryStorage(layout),
    server: nfsServer({
      ...options,
      layout,
      jail,
      programs,
      renderExports: (settings) => renderShares(shares, settings),
      gather: () => gather(shares),
    }),
    preparing: limited(PREPARED_AT_A_TIME),
    beingPrepared: 0,
    specs: new Map(),
    numbers: exportIds([]),
    confirmed: new Map(),
    broken: new Set(),
  };
  return shares;
}

function statusOf(finding: GaneshaFinding, { server, broken, specs }: Shares): DriverStatus {
  const status = { driver: 'ganesha', real: true, ...(finding.remedy && { remedy: finding.remedy }) };
  if (!server.isUp()) return { ...status, healthy: false, detail: `${finding.detail}; NFS-Ganesha is down` };
  if (broken.size === 0) return { ...status, healthy: true, detail: finding.detail };
  const detail = `${finding.detail}; ${broken.size} of ${specs.size} shares cannot be served`;
  return { ...status, healthy: false, detail };
}

/** Whatever fails reaches the engine as a DriverError. */
async function guarded<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (err) {
    throw hostError(err instanceof Error ? err.message : String(err), err);
  }
}
