/** Chooses the driver for each kind of thing on this host, and starts it. */
import { existsSync } from 'node:fs';
import { createDiskDriver } from '../drivers/disk/driver.ts';
import { hasVolumes } from '../drivers/disk/layout.ts';
import { isIP } from 'node:net';
import { findDistribution } from '../drivers/distribution/detect.ts';
import { createDistributionDriver } from '../drivers/distribution/driver.ts';
import { hasRegistries } from '../drivers/distribution/layout.ts';
import { createGaneshaDriver } from '../drivers/ganesha/driver.ts';
import { hasFileShares } from '../drivers/ganesha/layout.ts';
import { findGanesha, withoutFolders } from '../drivers/ganesha/detect.ts';
import { findHaproxy } from '../drivers/haproxy/detect.ts';
import { createHaproxyDriver } from '../drivers/haproxy/driver.ts';
import { idsIn, layoutOf } from '../drivers/haproxy/layout.ts';
import { createSmtpDriver } from '../drivers/smtp/driver.ts';
import { createWebhookDriver } from '../drivers/webhook/driver.ts';
import type { FileShareDriver } from '../drivers/file-share.ts';
import type { LoadBalancerDriver } from '../drivers/load-balancer.ts';
import type { RegistryDriver, RegistryHosting } from '../drivers/registry.ts';
import { createSimulatedDeliveryDriver } from '../drivers/simulated/delivery.ts';
import { createSimulatedFileShareDriver } from '../drivers/simulated/file-share.ts';
import { createSimulatedLoadBalancerDriver } from '../drivers/simulated/load-balancer.ts';
import { createSimulatedVolumeDriver } from '../drivers/simulated/volume.ts';
import type { VolumeDriver } from '../drivers/volume.ts';
import { createSimulatedRegistryDriver } from '../drivers/simulated/registry.ts';
import type { Clock } from '../platform/clock.ts';
import type { Logger } from '../platform/log.ts';
import type { MemberRules } from '../platform/member-networks.ts';
import type { Settings } from '../platform/settings.ts';
import type { DeliveryDrivers } from '../resources/notifications/reconcile.ts';

export interface Drivers {
  fileShare: FileShareDriver;
  loadBalancer: LoadBalancerDriver;
  /** With the snapshots. */
  volume: VolumeDriver;
  registry: RegistryDriver;
}

/** Every driver of a host, for what concerns them all. */
export function allDrivers(drivers: Drivers) {
  return [drivers.fileShare, drivers.loadBalancer, drivers.volume, drivers.registry];
}

/** @throws when a driver that was asked for by name cannot start, or one that has data to serve */
export async function startDrivers(
  settings: Settings,
  log: Logger,
  hosting: RegistryHosting | null,
  memberRules: MemberRules,
): Promise<Drivers> {
  const started: { stop(): Promise<void> }[] = [];
  const keep = <T extends { stop(): Promise<void> }>(driver: T): T => (started.push(driver), driver);
  try {
    return {
      volume: keep(await startVolumeDriver(settings, log)),
      fileShare: keep(await startFileShareDriver(settings, log)),
      loadBalancer: keep(await startLoadBalancerDriver(settings, log, memberRules)),
      registry: keep(await startRegistryDriver(settings, log, hosting)),
    };
  } catch (error) {
    for (const driver of started) await driver.stop().catch(() => {});
    throw error;
  }
}

async function startFileShareDriver(settings: Settings, log: Logger): Promise<FileShareDriver> {
  const host = settings.nfsHost;
  const pretend = (detail?: string, remedy?: string) => createSimulatedFileShareDriver({ host, detail, remedy });
  if (settings.fileShareDriver === 'simulated') {
    return pretend('by CLOUDYARD_FILE_SHARE_DRIVER', 'CLOUDYARD_FILE_SHARE_DRIVER=auto');
  }
  const finding = settings.fileShareDriver === 'ganesha' ? findGanesha() : withoutFolders(findGanesha());
  const { dataDir, nfsPort: port, nfsMountPort: mountPort, nfsVersion3: version3 } = settings;
  // Whoever has real shares is told, rather than given ones that only pretend in their place.
  const mustBeReal = settings.fileShareDriver === 'ganesha' || (await hasFileShares(dataDir));
  if (!finding.programs) {
    if (mustBeReal) throw new Error(`${finding.detail}; to mend it: ${finding.remedy}`);
    return pretend(finding.detail, finding.remedy);
  }
  const driver = createGaneshaDriver({ dataDir, host, port, mountPort, version3, log, finding });
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

async function startLoadBalancerDriver(
  settings: Settings,
  log: Logger,
  memberRules: MemberRules,
): Promise<LoadBalancerDriver> {
  const pretend = (detail?: string, remedy?: string) =>
    createSimulatedLoadBalancerDriver({ detail, remedy, memberRules });
  if (settings.loadBalancerDriver === 'simulated') {
    return pretend('by CLOUDYARD_LOAD_BALANCER_DRIVER', 'CLOUDYARD_LOAD_BALANCER_DRIVER=auto');
  }
  const { dataDir } = settings;
  const finding = findHaproxy();
  // As for file shares: who has load balancers that serve is told, rather than given ones that only pretend.
  const mustBeReal = settings.loadBalancerDriver === 'haproxy' || (await hasLoadBalancers(dataDir));
  if (!finding.haproxy) {
    if (mustBeReal) throw new Error(`${finding.detail}; to mend it: ${finding.remedy}`);
    return pretend(finding.detail, finding.remedy);
  }
  const driver = createHaproxyDriver({ dataDir, log, finding, memberRules });
  try {
    await driver.start();
    return driver;
  } catch (error) {
    await driver.stop().catch(() => {});
    if (mustBeReal) throw error;
    const [detail = ''] = (error as Error).message.split('\n');
    log.warn({ detail }, 'HAProxy cannot be started; load balancers are simulated');
    return pretend(detail, finding.remedy);
  }
}

async function startVolumeDriver({ volumeDriver, dataDir }: Settings, log: Logger): Promise<VolumeDriver> {
  if (volumeDriver === 'simulated') return createSimulatedVolumeDriver({ detail: 'by CLOUDYARD_VOLUME_DRIVER' });
  const driver = createDiskDriver({ dataDir });
  try {
    await driver.start();
    return driver;
  } catch (error) {
    // As for file shares: who has volumes is told, rather than given ones that only pretend.
    if (volumeDriver === 'disk' || (await hasVolumes(dataDir))) throw error;
    const detail = (error as Error).message;
    log.warn({ detail }, 'volumes cannot be kept in the data directory; they are simulated');
    return createSimulatedVolumeDriver({ detail, remedy: 'CLOUDYARD_DATA_DIR=<a folder that can be written to>' });
  }
}

/** Whether this host was ever asked to serve one. */
async function hasLoadBalancers(dataDir: string): Promise<boolean> {
  const { specs } = layoutOf(dataDir);
  return existsSync(specs) && (await idsIn(specs, '.json')).length > 0;
}

/** `hosting` null: it waits to be told by `configure`. */
async function startRegistryDriver(
  settings: Settings,
  log: Logger,
  hosting: RegistryHosting | null,
): Promise<RegistryDriver> {
  const { dataDir, registryHost: host, registryPort: port, registryTls: tls, registryPatienceSeconds } = settings;
  const address = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const pretend = (detail?: string, remedy?: string) => createSimulatedRegistryDriver({ address, detail, remedy });
  if (settings.registryDriver === 'simulated') {
    return pretend('by CLOUDYARD_REGISTRY_DRIVER', 'CLOUDYARD_REGISTRY_DRIVER=auto');
  }
  const finding = findDistribution();
  // As for file shares: who has images is told, rather than given a registry that only pretends.
  const mustBeReal = settings.registryDriver === 'distribution' || (await hasRegistries(dataDir));
  if (!finding.distribution) {
    if (mustBeReal) throw new Error(`${finding.detail}; to mend it: ${finding.remedy}`);
    return pretend(finding.detail, finding.remedy);
  }
  const patience = registryPatienceSeconds;
  const driver = createDistributionDriver({ dataDir, address, host, port, tls, patience, log, finding });
  try {
    await driver.start();
    if (hosting) await driver.configure(hosting);
    return driver;
  } catch (error) {
    await driver.stop().catch(() => {});
    if (mustBeReal) throw error;
    const detail = /address already in use/.test((error as Error).message)
      ? `port ${port} is in use by another program`
      : (error as Error).message.split('\n')[0];
    log.warn({ detail }, 'distribution cannot be started; registries are simulated');
    return pretend(detail, 'CLOUDYARD_REGISTRY_PORT=<a free port> npm start');
  }
}

/** What carries notifications. They are of no host: every process has them. */
export function createDeliveryDrivers(
  settings: Pick<Settings, 'smtpUrl' | 'smtpFrom' | 'webhookDriver' | 'webhookAllowPrivate'>,
  { now }: Clock,
): DeliveryDrivers {
  const { smtpUrl, smtpFrom, webhookDriver, webhookAllowPrivate: allowPrivate } = settings;
  const smtpLine = 'CLOUDYARD_SMTP_URL=smtp://host:port CLOUDYARD_SMTP_FROM=alerts@example.com';
  return {
    email:
      smtpUrl && smtpFrom
        ? createSmtpDriver({ url: smtpUrl, from: smtpFrom })
        : createSimulatedDeliveryDriver('e-mail', 'there is no CLOUDYARD_SMTP_URL', smtpLine),
    webhook:
      webhookDriver === 'webhook'
        ? createWebhookDriver({ allowPrivate, now })
        : createSimulatedDeliveryDriver('webhooks', 'by CLOUDYARD_WEBHOOK_DRIVER', 'CLOUDYARD_WEBHOOK_DRIVER=webhook'),
  };
}
