/** Registries by CNCF distribution: one process a data directory, a registry is a prefix of repositories in it. */
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
  /** `host:port`, as clients write it. */
  address: string;
  host: string;
  port: number;
  tls: { certificate: string; key: string } | null;
  /** How long what nothing needs is kept, seconds. */
  patience: number;
  log: Logger;
  finding: DistributionFinding;
}

export function createDistributionDriver(options: DistributionDriverOptions): RegistryDriver & {
  /** Leaves the process running, for the next driver to adopt: what a crash does. */
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
      const state = current === '' ? '; waits for an API server to tell where clients log in' : '; it is down';
      return { driver: 'distribution', real: true, healthy, detail: `${finding.detail}${healthy ? '' : state}` };
    },
    async start() {
      await onHost('the folders cannot be made', async () => {
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
        // The gate first: one that is to be replaced lets nothing through meanwhile.
        for (const daemon of daemons) await daemon.stop();
        daemons = [];
        // At the same time: the gate answers only once distribution does.
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
        // For tokens that are still valid: the gate refuses what they would push.
        await writeFile(layout.closed(prefix), '');
        await removeFolder(layout, layout.registry(prefix));
      });
    },
    list: () => namesIn(layout.repositories),
    async quarantine(prefix) {
      await onHost('the quarantine failed', async () => {
        if (!(await namesIn(layout.repositories)).includes(prefix)) return;
        // Left by a push that was going on when the registry was removed.
        if (existsSync(layout.closed(prefix))) return removeFolder(layout, layout.registry(prefix));
        await renameDurably(join(layout.repositories, prefix), join(layout.quarantine, `${prefix}.${Date.now()}`));
        log.warn({ prefix }, 'images of no registry put into quarantine');
      });
    },
    idleUploads: () => onHost('the uploads cannot be counted', () => readReport(layout)),
    collect: (ask, signal) =>
      turns('collect', () =>
        onHost('the images cannot be looked at', () => collect({ layout, ask, signal, patience, log })),
      ),
  };
}
