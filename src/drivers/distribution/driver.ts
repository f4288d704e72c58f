/** Registries on CNCF distribution: one process for each data directory; a registry is a prefix of its repositories. */
import { existsSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Daemon } from '../../platform/daemon.ts';
import type { Logger } from '../../platform/log.ts';
import type { CertificateSource } from '../../platform/tls/certificate.ts';
import type { CephMount } from '../ceph/mount.ts';
import { onHost, refuseAborted } from '../command.ts';
import { runsAsRoot, runtimeFolder } from '../confined.ts';
import type { RegistryDriver, RegistryHosting } from '../registry.ts';
import { oneAtATime } from '../../platform/turns.ts';
import { collect } from './collect.ts';
import { createDamage, type Damage } from './damage.ts';
import type { DistributionFinding } from './detect.ts';
import { renameDurably } from '../durable-files.ts';
import { layoutOf, makeFolders, namesIn, type Layout } from './layout.ts';
import { createGateCertificate } from './gate-certificate.ts';
import { type GateOptions, readReport, startGate } from './gate.ts';
import { startDistribution } from './process.ts';
import { removeContents, removeFolder } from './storage.ts';

export interface DistributionDriverOptions
  extends Pick<GateOptions, 'host' | 'port' | 'moves' | 'patience' | 'diskReserve' | 'log'> {
  dataDir: string;
  /** `host:port`, as in the names of images. */
  address: string;
  /** Opens the certificate that clients get; null: plain HTTP. */
  openCertificate: (() => Promise<CertificateSource>) | null;
  finding: DistributionFinding;
  /** A directory that several hosts mount; absent: a folder of the data directory. */
  shared?: SharedRegistries;
}

export interface SharedRegistries {
  /** The name of this host. */
  replica: string;
  /** Whether this host serves; false: it collects and removes only. Default: true. */
  serves?: boolean;
  mount(places: { target: string; state: string; onRemount(): void }): CephMount;
}

/** After a remount. Doubles with each failure: the new mount may be slow, or fail again. */
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 30_000;

const waiting = '; waiting for an API server to send the token server';

async function untilStarted(start: () => Promise<void>, log: Logger): Promise<void> {
  for (let delay = FIRST_RETRY_MS; ; delay = Math.min(delay * 2, LAST_RETRY_MS)) {
    try {
      return await start();
    } catch (error) {
      log.error({ err: error, retryMs: delay }, 'registries cannot be served');
      await sleep(delay, undefined, { ref: false });
    }
  }
}

/**
 * Serves after `start` and the first `configure`, and only once the certificate is known. `finding.distribution` must not be
 * null unless `shared.serves` is false.
 */
export function createDistributionDriver(options: DistributionDriverOptions): RegistryDriver & {
  /** Leaves the processes running for the next driver to adopt, as a crash does. */
  release(): Promise<void>;
} {
  const { dataDir, address, log, finding, shared } = options;
  const replica = shared?.replica ?? null;
  const layout = layoutOf(dataDir, replica);
  const turns = oneAtATime();
  const damage = createDamage(log);
  let daemons: Daemon[] = [];
  let current: RegistryHosting | null = null;
  /** What it was last configured with, until it ends. */
  let wanted: RegistryHosting | null = null;
  const certificate = createGateCertificate(layout, options.openCertificate);

  // Their working directory is in the mount, so they cannot use a new one.
  const onRemount = () =>
    void turns('process', async () => void (current = null)).then(() => untilStarted(restart, log));
  const mount = shared?.mount({ target: layout.root, state: dirname(layout.distribution), onRemount }) ?? null;

  const serve = async (hosting: RegistryHosting) => {
    // Called again when the certificate is known.
    if (!certificate.isKnown()) return;
    // The gate stops first, so that no request reaches distribution while it stops.
    for (const daemon of daemons) await daemon.stop();
    daemons = [];
    current = null;
    // Concurrently: the gate responds only once distribution does.
    const started = await Promise.allSettled([
      startGate(
        { ...options, layout, replica, hasTls: certificate.hasTls, storeCertificate: certificate.store },
        hosting,
      ),
      startDistribution({ ...options, layout, replica, program: finding.distribution! }, hosting),
    ]);
    daemons = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const failed = started.findLast((each) => each.status === 'rejected');
    if (failed) throw failed.reason;
    current = hosting;
    certificate.forgetServed();
    await certificate.renew();
  };
  const follow = (hosting: RegistryHosting) =>
    isDeepStrictEqual(hosting, current) ? certificate.renew() : serve(hosting);
  const followCertificate = (isOpen: () => boolean) =>
    void turns('process', async () => void (wanted && isOpen() && (await follow(wanted)))).catch((error: unknown) =>
      log.error({ err: error }, 'registries do not use the new certificate'),
    );
  /** Unless something else has started them, or the driver ends. */
  const restart = () => turns('process', async () => void (wanted && current === null && (await serve(wanted))));
  const removeLeft = async (name: string) => {
    const removal = damage.tolerate(() => rm(join(layout.removed, name), { recursive: true, force: true }));
    // Another host may be deleting it.
    await (shared ? removal.catch(() => undefined) : removal);
  };

  return {
    name: 'distribution',
    real: true,
    address,
    status() {
      const isUp = current !== null && daemons.every((each) => each.pid() !== null);
      const serves = isUp && !daemons.some((each) => each.isSilent());
      const isMounted = mount?.isMounted() ?? true;
      const healthy = (serves || shared?.serves === false) && isMounted;
      const down = wanted === null ? waiting : isUp ? '; it does not respond' : '; it is down';
      const unhealthy = isMounted ? down : `; the CephFS is not mounted at ${layout.root}`;
      const tls = certificate.problem();
      const problem = tls !== null ? `; TLS: ${tls}` : healthy ? '' : unhealthy;
      const detail = `${finding.detail}${shared ? ', in a CephFS' : ''}${problem}${damage.detail()}`;
      return { driver: 'distribution', real: true, healthy, detail };
    },
    async start() {
      await onHost('cannot create the folders', async () => {
        await mount?.open();
        await makeFolders(layout);
        for (const left of await readdir(layout.removed)) await removeLeft(left);
      });
      if (shared?.serves !== false) await certificate.open(followCertificate);
    },
    configure: (hosting: RegistryHosting) =>
      turns('process', async () => {
        if (shared?.serves === false) return;
        wanted = hosting;
        await follow(hosting);
      }),
    async stop() {
      await turns('process', async () => {
        wanted = current = null;
        await certificate.close();
        for (const daemon of daemons) await daemon.stop();
        await mount?.close();
        if (runsAsRoot()) await rm(runtimeFolder(layout.root), { recursive: true, force: true });
      });
    },
    async release() {
      await turns('process', async () => {
        wanted = null;
        await certificate.close();
        for (const daemon of daemons) await daemon.release();
        await mount?.release();
      });
    },
    ...createContents(layout, options.patience, log, damage),
  };
}

/** What the driver does with the images on the disk, whether or not the processes run. */
function createContents(
  layout: Layout,
  patience: number,
  log: Logger,
  damage: Damage,
): Pick<RegistryDriver, 'removeContents' | 'remove' | 'list' | 'quarantine' | 'idleUploads' | 'collect'> {
  const turns = oneAtATime();
  return {
    async removeContents(removal, signal) {
      refuseAborted(signal);
      await onHost('the removal failed', () => removeContents(layout, removal));
    },
    async remove(prefix, signal) {
      refuseAborted(signal);
      await onHost('the removal failed', async () => {
        // The gate refuses pushes to a closed registry; tokens for it may still be valid.
        await writeFile(layout.closed(prefix), '');
        await removeFolder(layout, layout.registry(prefix));
      });
    },
    list: () => namesIn(layout.repositories),
    async quarantine(prefix) {
      await onHost('the quarantine failed', async () => {
        if (!(await namesIn(layout.repositories)).includes(prefix)) return;
        // Left by a push that was in progress when the registry was removed.
        if (existsSync(layout.closed(prefix))) return removeFolder(layout, layout.registry(prefix));
        await renameDurably(join(layout.repositories, prefix), join(layout.quarantine, `${prefix}.${Date.now()}`));
        log.warn({ prefix }, 'images without a registry moved to quarantine');
      });
    },
    idleUploads: () => onHost('cannot read the sizes of uploads', () => readReport(layout)),
    collect: (requestHold, signal) =>
      turns('collect', () =>
        onHost('cannot scan the images', () => collect({ layout, requestHold, signal, patience, log, damage })),
      ),
  };
}
