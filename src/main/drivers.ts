/** Chooses the driver for each kind of thing on this host, and starts it. */
import { createGaneshaDriver } from '../drivers/ganesha/driver.ts';
import { hasFileShares } from '../drivers/ganesha/layout.ts';
import { findGanesha } from '../drivers/ganesha/detect.ts';
import type { FileShareDriver } from '../drivers/file-share.ts';
import { createSimulatedFileShareDriver } from '../drivers/simulated/file-share.ts';
import type { Logger } from '../platform/log.ts';
import type { Settings } from '../platform/settings.ts';

export interface Drivers {
  fileShare: FileShareDriver;
}

/** Every driver of a host, for what concerns them all. */
export function allDrivers(drivers: Drivers) {
  return [drivers.fileShare];
}

/** @throws when a driver that was asked for by name cannot start, or one that has data to serve */
export async function startDrivers(settings: Settings, log: Logger): Promise<Drivers> {
  return { fileShare: await startFileShareDriver(settings, log) };
}

async function startFileShareDriver(settings: Settings, log: Logger): Promise<FileShareDriver> {
  const host = settings.nfsHost;
  const pretend = (detail?: string, remedy?: string) => createSimulatedFileShareDriver({ host, detail, remedy });
  if (settings.fileShareDriver === 'simulated') {
    return pretend('by CLOUDYARD_FILE_SHARE_DRIVER', 'CLOUDYARD_FILE_SHARE_DRIVER=auto');
  }
  const finding = findGanesha();
  const { dataDir, nfsPort: port, nfsMountPort: mountPort } = settings;
  // Whoever has real shares is told, rather than given ones that only pretend in their place.
  const mustBeReal = settings.fileShareDriver === 'ganesha' || (await hasFileShares(dataDir));
  if (!finding.programs) {
    if (mustBeReal) throw new Error(`${finding.detail}; to mend it: ${finding.remedy}`);
    return pretend(finding.detail, finding.remedy);
  }
  const driver = createGaneshaDriver({ dataDir, host, port, mountPort, log, finding });
  try {
    await driver.start();
    return driver;
  } catch (error) {
    await driver.stop().catch(() => {});
    if (mustBeReal) throw error;
    const [detail = ''] = (error as Error).message.split('\n');
    log.warn({ detail }, 'NFS-Ganesha cannot be started; file shares are simulated');
    return pretend(detail, 'CLOUDYARD_NFS_PORT=<a free port> npm start');
  }
}
