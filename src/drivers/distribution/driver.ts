/** Registries by CNCF distribution: one process a data directory, a registry is a prefix of repositories in it. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Daemon } from '../../platform/daemon.ts';
import { hostError, refuseAborted } from '../command.ts';
import type { RegistryDriver, RegistryHosting } from '../registry.ts';
import { oneAtATime } from '../turns.ts';
import { collect } from './collect.ts';
import type { DistributionFinding } from './detect.ts';
import { renameDurably } from '../durable-files.ts';
import { layoutOf, makeFolders, namesIn } from './layout.ts';
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
  let daemon: Daemon | null = null;
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
      const healthy = daemon?.pid() != null;
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
        await daemon?.stop();
        daemon = await startDistribution({ ...options, layout, program: finding.distribution! }, hosting);
        current = wanted;
      }),
    stop: () => turns('process', async () => daemon?.stop()),
    release: () => turns('process', async () => daemon?.release()),
    async removeContents(removal, signal) {
      refuseAborted(signal);
      await onHost('the removal failed', () => removeContents(layout, removal));
    },
    async remove(prefix, signal) {
      refuseAborted(signal);
      await onHost('the removal failed', () => removeFolder(layout, layout.registry(prefix)));
    },
    list: () => namesIn(layout.repositories),
    async quarantine(prefix) {
      await onHost('the quarantine failed', async () => {
        if (!(await namesIn(layout.repositories)).includes(prefix)) return;
        await renameDurably(join(layout.repositories, prefix), join(layout.quarantine, `${prefix}.${Date.now()}`));
        log.warn({ prefix }, 'images of no registry put into quarantine');
      });
    },
    collect: (ask, signal) =>
      turns('collect', () =>
        onHost('the images cannot be looked at', () => collect({ layout, ask, signal, patience, log })),
      ),
  };
}
