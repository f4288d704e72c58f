/**
 * Serves file shares over NFS. The operations on a share are in shares.ts.
 *
 * Failure modes: a start that fails stops and unmounts nothing; the caller stops or releases the driver. A share whose image
 * cannot be mounted at the start is not exported, and the status is unhealthy; the next sweep applies it again. The other
 * shares are served.
 */
import type { DriverStatus } from '../../platform/driver-status.ts';
import { onHost, refuseAborted } from '../command.ts';
import type { FileShareDriver } from '../file-share.ts';
import { limited, oneAtATime } from '../../platform/turns.ts';
import { findGanesha, type GaneshaFinding } from './detect.ts';
import { directoryStorage } from './directories.ts';
import { imageStorage } from './images.ts';
import { createJail } from './jail.ts';
import { layoutOf } from './layout.ts';
import { nfsServer, type NfsServerOptions } from './server.ts';
import {
  applyShare,
  awaitPreparation,
  confirmExports,
  findDamaged,
  restoreShares,
  renderShares,
  type Shares,
  removeShare,
} from './shares.ts';
import { exportIds } from './specs.ts';

export interface GaneshaDriverOptions
  extends Pick<NfsServerOptions, 'host' | 'port' | 'mountPort' | 'version3' | 'log'> {
  dataDir: string;
  /** What the host can do; default: detect it. */
  finding?: GaneshaFinding;
}

export interface GaneshaDriver extends FileShareDriver {
  /** Leaves Ganesha and the mounts for the next process to adopt. Clients are not affected. */
  release(): Promise<void>;
}

const CONCURRENT_PREPARATIONS = 4;
const CONFIRM_AGAIN_MS = 10_000;

/** @throws Error if the host cannot serve file shares (`finding.programs` is null) */
export function createGaneshaDriver(options: GaneshaDriverOptions): GaneshaDriver {
  const { finding = findGanesha() } = options;
  const shares = sharesFor(options, finding);
  const { server, storage } = shares;
  const inTurn = oneAtATime();
  /** Calls for one id never overlap, and every failure is a DriverError. */
  const guarded = <T>(id: string, work: () => Promise<T>) => onHost(null, () => inTurn(id, work));

  let confirming: NodeJS.Timeout | undefined;
  let ended = false;

  /** Until Ganesha has confirmed its exports. */
  function confirmLater(): void {
    if (shares.unconfirmed === null || ended) return;
    confirming = setTimeout(() => void confirmExports(shares).then(confirmLater), CONFIRM_AGAIN_MS).unref();
  }

  function endConfirming(): void {
    ended = true;
    clearTimeout(confirming);
  }

  async function stop(): Promise<void> {
    endConfirming();
    await server.stop();
    await storage.close();
  }

  return {
    name: 'ganesha',
    real: true,
    status: () => ({ ...statusOf(finding, shares), port: options.port }),
    start: () =>
      onHost('file shares cannot be served', async () => {
        await restoreShares(shares);
        confirmLater();
      }),
    stop,
    async release() {
      endConfirming();
      await server.release();
    },
    apply: (desired, signal) => guarded(desired.id, () => applyShare(shares, desired, signal)),
    async remove(id, signal) {
      refuseAborted(signal);
      await guarded(id, () => removeShare(shares, id, { quarantine: false }));
    },
    quarantine: (id) => guarded(id, () => removeShare(shares, id, { quarantine: true })),
    usage: storage.usage,
    list: async () => [...new Set([...shares.specs.keys(), ...(await storage.list())])].sort(),
    findDamaged: () => findDamaged(shares),
  };
}

function sharesFor(options: GaneshaDriverOptions, finding: GaneshaFinding): Shares {
  const { dataDir, host, log } = options;
  const { programs, sizeEnforced } = finding;
  if (!programs) throw new Error(finding.detail);
  const layout = layoutOf(dataDir);
  // Without size limits nothing can be mounted, and shares are plain folders.
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
      awaitPreparation: () => awaitPreparation(shares),
    }),
    preparing: limited(CONCURRENT_PREPARATIONS),
    inPreparation: 0,
    specs: new Map(),
    numbers: exportIds([]),
    confirmed: new Map(),
    broken: new Set(),
    unconfirmed: null,
  };
  return shares;
}

function statusOf(finding: GaneshaFinding, { server, broken, specs, unconfirmed }: Shares): DriverStatus {
  const status = { driver: 'ganesha', real: true, remedy: finding.remedy };
  if (!server.isUp()) return { ...status, healthy: false, detail: `${finding.detail}; NFS-Ganesha is down` };
  if (server.isSilent())
    return { ...status, healthy: false, detail: `${finding.detail}; NFS-Ganesha does not respond` };
  if (unconfirmed) return { ...status, healthy: false, detail: `${finding.detail}; ${unconfirmed}` };
  if (broken.size === 0) return { ...status, healthy: true, detail: finding.detail };
  const detail = `${finding.detail}; ${broken.size} of ${specs.size} shares cannot be served`;
  return { ...status, healthy: false, detail };
}
