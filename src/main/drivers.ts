/** Chooses the driver for each kind of thing on this host, and starts it. */
import { createGaneshaDriver } from '../drivers/ganesha/driver.ts';
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
  if (settings.fileShareDriver === 'simulated')
    return pretend('by CLOUDYARD_FILE_SHARE_DRIVER', 'CLOUDYARD_FILE_SHARE_DRIVER=auto');
  const finding = findGanesha();
  if (!finding.programs) {
    if (settings.fileShareDriver === 'ganesha') throw new Error(`${finding.detail}; to mend it: ${finding.remedy}`);
    return pretend(finding.detail, finding.remedy);
  }
  const { dataDir, nfsPort: port, nfsMountPort: mountPort } = settings;
  const driver = createGaneshaDriver({ dataDir, host, port, mountPort, log, finding });
  try {
    await driver.start();
    return driver;
  } catch (error) {
    await driver.stop().catch(() => {});
    // Whoever has real shares is told, rather than given ones that only pretend in their place.
    if (settings.fileShareDriver === 'ganesha' || (await driver.list()).length > 0) throw error;
    const detail = (error as Error).message;
    log.warn({ detail }, 'NFS-Ganesha cannot be started; file shares are simulated');
    return pretend(detail, 'CLOUDYARD_NFS_PORT=<a free port> npm start');
  }
}
