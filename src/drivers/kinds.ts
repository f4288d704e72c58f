/**
 * Every kind of driver: one entry each. The start of the drivers, the start table, `doctor`, health, settings, their
 * documentation and the test harness are derived from this file (main/drivers.ts, main/settings.ts).
 */
import { inBrackets } from '../platform/network-address.ts';
import { endpointOf } from '../platform/own-ports.ts';
import { shellWord } from '../platform/shell-word.ts';
import { followCertificateFiles, type CertificateFiles } from '../platform/tls/certificate-files.ts';
import type { CertificateSource } from '../platform/tls/certificate.ts';
import { certificateFilesIn } from '../platform/tls/settings.ts';
import { cephPrograms } from './ceph/detect.ts';
import type { EmailDriver, WebhookDriver } from './delivery.ts';
import { hasVolumes } from './disk/layout.ts';
import { findDistribution } from './distribution/detect.ts';
import { createDistributionDriver } from './distribution/driver.ts';
import { hasRegistries } from './distribution/layout.ts';
import type { FileShareDriver } from './file-share.ts';
import { findGanesha, portOfRpcbind, vfsPlugin, withoutFolders } from './ganesha/detect.ts';
import { createGaneshaDriver } from './ganesha/driver.ts';
import { hasFileShares } from './ganesha/layout.ts';
import { findHaproxy, findStreamModule } from './haproxy/detect.ts';
import { createHaproxyDriver } from './haproxy/driver.ts';
import { hasLoadBalancers } from './haproxy/layout.ts';
import { deliveryDriver, hostDriver, type DriverContext, type RegionStorage } from './kind.ts';
import type { LoadBalancerDriver } from './load-balancer.ts';
import type { RegistryDriver } from './registry.ts';
import { detectVolumes, findSharedDistribution, sharedRegistries, type VolumeSettings } from './region-storage.ts';
import { createSimulatedDeliveryDriver } from './simulated/delivery.ts';
import { createSimulatedFileShareDriver } from './simulated/file-share.ts';
import { createSimulatedLoadBalancerDriver } from './simulated/load-balancer.ts';
import { createSimulatedRegistryDriver } from './simulated/registry.ts';
import { createSimulatedVolumeDriver } from './simulated/volume.ts';
import { createSmtpDriver } from './smtp/driver.ts';
import { mailErrors } from './smtp/settings.ts';
import { createWebhookDriver } from './webhook/driver.ts';

const rpcbindPort = 111;
const standardNfsPort = 2049;
const standardMountPort = 20_048;

const volume = hostDriver({
  title: 'volumes',
  setting: 'CLOUDYARD_VOLUME_DRIVER',
  settings: [
    {
      name: 'CLOUDYARD_VOLUME_DRIVER',
      default: '`auto`',
      meaning: '`disk`, `simulated`, or `auto`: images in the data directory if that is writable.',
    },
  ],
  readSettings: ({ choice }): VolumeSettings => ({
    driver: choice('CLOUDYARD_VOLUME_DRIVER', ['auto', 'disk', 'simulated'], 'auto'),
    storage: null,
  }),
  programs: [],
  storagePrograms: cephPrograms,
  forStorage: (settings, storage) =>
    settings.driver === 'simulated' ? settings : { ...settings, driver: storage.driver, storage },
  detect: detectVolumes,
  hasData: hasVolumes,
  repair: (dataDir) => `sudo chown -R "$(id -u)" ${shellWord(dataDir)}`,
  simulated: (_settings, _context, why) => createSimulatedVolumeDriver(why),
});

const fileShare = hostDriver({
  title: 'file shares',
  setting: 'CLOUDYARD_FILE_SHARE_DRIVER',
  settings: [
    {
      name: 'CLOUDYARD_FILE_SHARE_DRIVER',
      default: '`auto`',
      meaning: '`ganesha`, `simulated`, or `auto`: NFS-Ganesha if it can run on this host.',
    },
    {
      name: 'CLOUDYARD_NFS_HOST',
      default: 'by the host',
      meaning:
        'Name or address in `connection_point`. Not set: the value of CLOUDYARD_HOST, or 127.0.0.1 if that is a wildcard. If it is an address of this machine, NFS is served on that address only; a name means all addresses.',
    },
    {
      name: 'CLOUDYARD_NFS_PORT',
      default: '`2049`',
      meaning: 'Port of NFS. `connection_point` does not contain it: clients pass it as a mount option.',
    },
    {
      name: 'CLOUDYARD_NFS_MOUNT_PORT',
      default: 'by the NFS port',
      meaning:
        'Port of the NFSv3 mount protocol. Not set: 20048 if the NFS port is 2049, otherwise the port after the NFS port.',
    },
    {
      name: 'CLOUDYARD_NFS_VERSIONS',
      default: '`3,4`',
      meaning: 'NFS versions to serve. `4` serves NFSv4 only and does not need rpcbind.',
    },
  ],
  readSettings({ host: hostIn, choice, integer, reject }, { host }) {
    const port = integer('CLOUDYARD_NFS_PORT', standardNfsPort, 1, 65_535);
    const nextPort = port === standardNfsPort ? standardMountPort : Math.min(port + 1, 65_535);
    const mountPort = integer('CLOUDYARD_NFS_MOUNT_PORT', nextPort, 1, 65_535);
    const version3 = choice('CLOUDYARD_NFS_VERSIONS', ['3,4', '4'], '3,4') === '3,4';
    if (version3 && mountPort === port) {
      reject(`CLOUDYARD_NFS_MOUNT_PORT conflicts with CLOUDYARD_NFS_PORT: both are ${port}`);
    }
    return {
      driver: choice('CLOUDYARD_FILE_SHARE_DRIVER', ['auto', 'ganesha', 'simulated'], 'auto'),
      host: hostIn('CLOUDYARD_NFS_HOST') ?? host,
      port,
      mountPort,
      version3,
    };
  },
  ports: ({ host, port, mountPort, version3 }) => [
    { daemon: 'NFS', port, host, setting: 'CLOUDYARD_NFS_PORT', packageService: 'nfs-ganesha.service' },
    { daemon: 'mountd', port: mountPort, host, ...(version3 && { setting: 'CLOUDYARD_NFS_MOUNT_PORT' }) },
    { daemon: 'rpcbind', port: rpcbindPort },
  ],
  endpoints: ({ host }) => [{ name: 'NFS', host, port: null }],
  programs: [
    { name: 'ganesha.nfsd', package: 'nfs-ganesha' },
    { name: 'VFS plugin of Ganesha', package: 'nfs-ganesha-vfs', find: vfsPlugin },
    { name: 'mkfs.xfs', package: 'xfsprogs' },
    { name: 'xfs_growfs', package: 'xfsprogs' },
    { name: 'mount', package: 'mount' },
    { name: 'losetup', package: 'mount' },
    { name: 'rpcbind', package: 'rpcbind' },
    { name: 'port of rpcbind', package: 'netbase', find: portOfRpcbind },
  ],
  detect(settings) {
    const found = settings.driver === 'ganesha' ? findGanesha() : withoutFolders(findGanesha());
    return {
      driver: 'ganesha',
      ...found,
      create:
        found.programs &&
        ((context): FileShareDriver => createGaneshaDriver({ ...settings, ...context, finding: found })),
    };
  },
  hasData: hasFileShares,
  simulated: ({ host }, _context, why) => createSimulatedFileShareDriver({ host, ...why }),
});

const loadBalancer = hostDriver({
  title: 'load balancers',
  setting: 'CLOUDYARD_LOAD_BALANCER_DRIVER',
  settings: [
    {
      name: 'CLOUDYARD_LOAD_BALANCER_DRIVER',
      default: '`auto`',
      meaning: '`haproxy`, `simulated`, or `auto`: HAProxy if it can run on this host.',
    },
  ],
  readSettings: ({ choice }) => ({
    driver: choice('CLOUDYARD_LOAD_BALANCER_DRIVER', ['auto', 'haproxy', 'simulated'], 'auto'),
  }),
  programs: [
    { name: 'haproxy', package: 'haproxy' },
    { name: 'nginx', package: 'nginx-light' },
    { name: 'stream module of nginx', package: 'libnginx-mod-stream', find: findStreamModule },
    { name: 'ping', package: 'iputils-ping' },
    { name: 'setpriv', package: 'util-linux' },
    { name: 'nft', package: 'nftables' },
  ],
  detect() {
    const found = findHaproxy();
    return {
      driver: 'haproxy',
      ...found,
      create:
        found.haproxy === null
          ? null
          : (context): LoadBalancerDriver => createHaproxyDriver({ ...context, finding: found }),
    };
  },
  hasData: hasLoadBalancers,
  simulated: (_settings, { memberRules }, why) => createSimulatedLoadBalancerDriver({ memberRules, ...why }),
  accounts: true,
  needsEgressFilter: true,
});

const registry = hostDriver({
  title: 'registries',
  setting: 'CLOUDYARD_REGISTRY_DRIVER',
  settings: [
    {
      name: 'CLOUDYARD_REGISTRY_DRIVER',
      default: '`auto`',
      meaning: '`distribution`, `simulated`, or `auto`: CNCF distribution if it is installed.',
    },
    {
      name: 'CLOUDYARD_REGISTRY_HOST',
      default: 'by the host',
      meaning:
        'Name or address in the `url` of registries. Not set: the value of CLOUDYARD_HOST, or 127.0.0.1 if that is a wildcard. If it is an address of this machine, registries are served on that address only; a name means all addresses.',
    },
    {
      name: 'CLOUDYARD_REGISTRY_PORT',
      default: '`5000`',
      meaning: 'Port that images are pushed to and pulled from.',
    },
    {
      name: 'CLOUDYARD_REGISTRY_TLS_CERTIFICATE',
      default: 'not set',
      meaning:
        'PEM file with the certificate of CLOUDYARD_REGISTRY_HOST and its issuers, read again when it changes. Not set: the certificate from ACME if CLOUDYARD_ACME_DOMAINS has CLOUDYARD_REGISTRY_HOST, otherwise plain HTTP. A relative path starts at the checkout.',
    },
    {
      name: 'CLOUDYARD_REGISTRY_TLS_KEY',
      default: 'not set',
      meaning: 'PEM file with the private key. Set both or neither.',
    },
    {
      name: 'CLOUDYARD_REGISTRY_PATIENCE_SECONDS',
      default: '`600`',
      meaning:
        'How long garbage collection keeps unreferenced blobs, which an unfinished push may need, and abandoned uploads. Less than 300 can break slow pushes.',
    },
  ],
  readSettings(reader, defaults) {
    const { choice, integer } = reader;
    const host = reader.host('CLOUDYARD_REGISTRY_HOST') ?? defaults.host;
    const port = integer('CLOUDYARD_REGISTRY_PORT', 5000, 1, 65_535);
    return {
      driver: choice('CLOUDYARD_REGISTRY_DRIVER', ['auto', 'distribution', 'simulated'], 'auto'),
      host,
      port,
      /** As clients write it. */
      address: `${inBrackets(host)}:${port}`,
      /** PEM files; null: plain HTTP. */
      tls: certificateFilesIn(reader, 'CLOUDYARD_REGISTRY_TLS_CERTIFICATE', 'CLOUDYARD_REGISTRY_TLS_KEY'),
      /** Seconds. */
      patience: integer('CLOUDYARD_REGISTRY_PATIENCE_SECONDS', 600, 1, 86_400),
      storage: null as RegionStorage | null,
      /** Whether this process serves the images of a shared storage, or only removes some. */
      serves: true,
      /** Whether `host` is an address that moves between hosts, so that the program listens on all addresses. */
      moves: false,
    };
  },
  ports: ({ host, port }) => [
    { daemon: 'registry', port, host, setting: 'CLOUDYARD_REGISTRY_PORT', packageService: 'docker-registry.service' },
  ],
  endpoints: ({ host }) => [{ name: 'registry', host, port: null }],
  programs: [{ name: 'docker-registry', package: 'docker-registry' }],
  storagePrograms: [
    { name: 'docker-registry', package: 'docker-registry' },
    { name: 'ceph-fuse', package: 'ceph-fuse' },
  ],
  forStorage: (settings, storage) => ({ ...settings, storage }),
  detect(settings) {
    const found = settings.storage ? findSharedDistribution() : findDistribution();
    return {
      driver: 'distribution',
      ...found,
      create:
        found.distribution === null
          ? null
          : (context): RegistryDriver =>
              createDistributionDriver({
                ...settings,
                ...context,
                openCertificate: registryCertificate(settings, context),
                finding: found,
                ...(settings.storage && {
                  shared: { ...sharedRegistries(settings.storage, context), serves: settings.serves },
                }),
              }),
    };
  },
  async configure(driver, { registryHosting }) {
    if (registryHosting) await driver.configure(registryHosting);
  },
  hasData: hasRegistries,
  simulated: ({ address }, _context, why) => createSimulatedRegistryDriver({ address, ...why }),
  accounts: true,
});

/** Where the certificate of registries comes from: files, or ACME. Null: plain HTTP. */
function registryCertificate(
  { tls, host }: { tls: CertificateFiles | null; host: string },
  { acmeCertificateFor, log }: Pick<DriverContext, 'acmeCertificateFor' | 'log'>,
): (() => Promise<CertificateSource>) | null {
  return tls ? async () => followCertificateFiles({ files: tls, log }) : acmeCertificateFor(host);
}

const email = deliveryDriver({
  title: 'e-mail',
  settings: [
    {
      name: 'CLOUDYARD_SMTP_URL',
      default: 'not set',
      meaning: 'Mail server: `smtp://user:password@host:port` or `smtps://…`. Not set: e-mail is simulated.',
    },
    {
      name: 'CLOUDYARD_SMTP_FROM',
      default: 'not set',
      meaning:
        'Sender: `alerts@example.com` or `Cloudyard <alerts@example.com>`. Required if CLOUDYARD_SMTP_URL is set.',
    },
  ],
  readSettings({ text, reject }) {
    const [url, from] = [text('CLOUDYARD_SMTP_URL'), text('CLOUDYARD_SMTP_FROM')];
    for (const error of mailErrors(url, from)) reject(error);
    return { url, from };
  },
  endpoints: ({ url }) => endpointOf('SMTP', url, url?.startsWith('smtps:') ? 465 : 587),
  create: ({ url, from }): EmailDriver =>
    url && from
      ? createSmtpDriver({ url, from })
      : createSimulatedDeliveryDriver(
          'e-mail',
          'CLOUDYARD_SMTP_URL is not set',
          'CLOUDYARD_SMTP_URL=smtp://mail.example.com:587 CLOUDYARD_SMTP_FROM=alerts@example.com npm start',
        ),
});

const webhook = deliveryDriver({
  title: 'webhooks',
  settings: [
    {
      name: 'CLOUDYARD_WEBHOOK_DRIVER',
      default: '`webhook`',
      meaning: '`webhook`, or `simulated`: no webhook is called.',
    },
    {
      name: 'CLOUDYARD_WEBHOOK_ALLOW_PRIVATE',
      default: '`0`',
      meaning: '`1` allows webhooks to loopback, private and link-local addresses.',
    },
  ],
  readSettings: ({ choice, integer }) => ({
    driver: choice('CLOUDYARD_WEBHOOK_DRIVER', ['webhook', 'simulated'], 'webhook'),
    allowPrivate: integer('CLOUDYARD_WEBHOOK_ALLOW_PRIVATE', 0, 0, 1) === 1,
  }),
  create: ({ driver, allowPrivate }, { now }): WebhookDriver =>
    driver === 'webhook'
      ? createWebhookDriver({ allowPrivate, now })
      : createSimulatedDeliveryDriver(
          'webhooks',
          'CLOUDYARD_WEBHOOK_DRIVER is simulated',
          'CLOUDYARD_WEBHOOK_DRIVER=webhook npm start',
        ),
});

/** In the order of the start table. */
export const hostDriverKinds = { fileShare, loadBalancer, volume, registry };

export const deliveryDriverKinds = { email, webhook };

/** The running drivers of a host, by kind. */
export type Drivers = {
  [Kind in keyof typeof hostDriverKinds]: ReturnType<(typeof hostDriverKinds)[Kind]['simulated']>;
};

export type DeliveryDrivers = {
  [Kind in keyof typeof deliveryDriverKinds]: ReturnType<(typeof deliveryDriverKinds)[Kind]['create']>;
};

type AllKinds = typeof hostDriverKinds & typeof deliveryDriverKinds;

/** The settings of all drivers as plain data, by kind. */
export type DriverSettings = { [Kind in keyof AllKinds]: ReturnType<AllKinds[Kind]['readSettings']> };
