/** Registries on CNCF distribution: one process for each data directory; a registry is a prefix of its repositories. */
import { existsSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Daemon } from '../../platform/daemon.ts';
import { hostError, refuseAborted } from '../command.ts';
import { runsAsRoot, runtimeFolder } from '../confined.ts';
import type { RegistryDriver, RegistryHosting } from '../registry.ts';
import { oneAtATime } from '../turns.ts';
import { collect } from './collect.ts';
import type { DistributionFinding } from './detect.ts';
import { renameDurably } from '../durable-files.ts';
import { layoutOf, makeFolders, namesIn } from './layout.ts';
import { readReport, startGate } from './gate.ts';
import { startDistribution } from './process.ts';
import { removeContents, removeFolder } from './storage.ts';

export interface DistributionDriverOptions {
  dataDir: string;
  /** `host:port`, as in the names of images. */
  address: string;
  host: string;
  port: number;
  tls: { certificate: string; key: string } | null;
  /** Seconds until unreferenced data and abandoned uploads are removed. */
  patience: number;
  /** Percent of the disk that pushes must not use. */
  diskReserve: number;
  log: Logger;
  finding: DistributionFinding;
}

export function createDistributionDriver(options: DistributionDriverOptions): RegistryDriver & {
  /** Leaves the processes running for the next driver to adopt, as a crash does. */
  release(): Promise<void>;
} {
  const { dataDir, address, patience, log, finding } = options;
  const layout = layoutOf(dataDir);
  const turns = oneAtATime();
  let daemons: Daemon[] = [];
  let current = '';

  const onHost = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw hostError(`${what}: ${(error as Error).message}`, error);
    }
  };

  return {
    name: 'distribution',
    real: true,
    address,
    status() {
      const healthy = daemons.length > 0 && daemons.every((each) => each.pid() !== null);
      const state = current === '' ? '; waiting for an API server to send the token server' : '; it is down';
      return { driver: 'distribution', real: true, healthy, detail: `${finding.detail}${healthy ? '' : state}` };
    },
    async start() {
      await onHost('cannot create the folders', async () => {
        await makeFolders(layout);
        for (const left of await readdir(layout.removed)) {
          await rm(join(layout.removed, left), { recursive: true, force: true });
        }
      });
    },
    configure: (hosting: RegistryHosting) =>
      turns('process', async () => {
        const wanted = JSON.stringify(hosting);
        if (wanted === current) return;
        // The gate stops first, so that no request reaches distribution while it stops.
        for (const daemon of daemons) await daemon.stop();
        daemons = [];
        // Concurrently: the gate responds only once distribution does.
        const started = await Promise.allSettled([
          startGate({ ...options, layout }, hosting),
          startDistribution({ ...options, layout, program: finding.distribution! }, hosting),
        ]);
        daemons = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
        const failed = started.findLast((each) => each.status === 'rejected');
        if (failed) throw failed.reason;
        current = wanted;
      }),
    async stop() {
      await turns('process', async () => {
        for (const daemon of daemons) await daemon.stop();
        if (runsAsRoot()) await rm(runtimeFolder(layout.root), { recursive: true, force: true });
      });
    },
    async release() {
      await turns('process', async () => {
        for (const daemon of daemons) await daemon.release();
      });
    },
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
        onHost('cannot scan the images', () => collect({ layout, requestHold, signal, patience, log })),
      ),
  };
}
