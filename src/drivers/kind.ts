/** What an entry of kinds.ts declares. Everything that must know all drivers is derived from the entries (main/drivers.ts). */
import type { Logger } from '../platform/log.ts';
import type { MemberRules } from '../platform/member-networks.ts';
import type { ControlPlaneEndpoint, OwnPort } from '../platform/own-ports.ts';
import type { CertificateSource } from '../platform/tls/certificate.ts';
import type { SettingDescription, SettingReader } from '../platform/setting-reader.ts';
import type { Driver } from './driver.ts';
import type { Peers } from './load-balancer.ts';
import type { RegistryHosting } from './registry.ts';

/** Declared by every kind of driver. `S`: its settings as plain data. */
interface Declaration<S> {
  /** As `doctor`, the start table and `GET /healthz/drivers` name it: `file shares`. */
  title: string;
  /** The settings that `readSettings` reads, for the help and the documentation. */
  settings: SettingDescription[];
  readSettings(reader: SettingReader, defaults: DefaultsOfSettings): S;
  /** Where its programs listen. Members of load balancers must not be there. */
  ports?(settings: S): DriverPort[];
  /** Hosts that it depends on. Members of load balancers must not be there either. */
  endpoints?(settings: S): ControlPlaneEndpoint[];
}

interface DefaultsOfSettings {
  /** An address at which clients reach this host: CLOUDYARD_HOST, or loopback where that is a wildcard. */
  host: string;
}

export interface DriverPort extends OwnPort {
  /** The setting that changes it; absent: fixed, or not in use with these settings. */
  setting?: string;
  host?: string;
  /** The service that the Debian package of its program starts on this port, with a configuration of its own. */
  packageService?: string;
}

/** A driver that makes resources real on one host. */
export interface HostDriverKind<D extends HostDriver, S extends { driver: string }> extends Declaration<S> {
  /** The setting that selects the driver; its value is `driver` of the settings: `auto`, `simulated` or the real one. */
  setting: string;
  /** Programs that the real driver runs, with the Debian packages that contain them. */
  programs: HostProgram[];
  /** Programs that are needed instead if the region has its own storage. */
  storagePrograms?: HostProgram[];
  /** The settings of a worker whose region has its own storage. Absent: the driver does not use it. */
  forStorage?(settings: S, storage: RegionStorage): S;
  /** What this host can do, decided before anything is started. */
  detect(settings: S): Detection<D>;
  /** Whether the data directory holds resources of this kind. Then a simulated driver must not replace the real one. */
  hasData(dataDir: string): Promise<boolean>;
  /** What to run when the real driver does not start, unless a port is in use. */
  repair?(dataDir: string): string;
  /** After `start` of the real driver. */
  configure?(driver: D, context: DriverContext): Promise<void>;
  simulated(settings: S, context: SimulatedContext, why: Simulation): D;
  /** Accounts that the egress filter applies to (confined.ts). */
  accounts?: boolean;
  /** Whether the status reports that the egress filter is not in force. */
  needsEgressFilter?: boolean;
}

/** Where the data of a region is, if not on the host of its worker: `storage` of the regions file. */
export interface RegionStorage {
  driver: 'ceph';
  /** The configuration file of the cluster. */
  conf: string;
  /** Without `client.`. */
  user: string;
  /** The pool of volumes. */
  pool: string;
  /** The CephFS of file shares and registries. */
  filesystem: string;
}

/** A driver that sends messages. It belongs to no host: every process has one. */
interface DeliveryDriverKind<D, S> extends Declaration<S> {
  create(settings: S, context: { now(): Date }): D;
}

type HostDriver = Pick<Driver<never, unknown>, 'name' | 'status' | 'start' | 'stop' | 'release'>;

export interface Detection<D> {
  /** The name of the real driver. */
  driver: string;
  /** Makes the real driver; null: this host cannot run it. */
  create: ((context: DriverContext) => D) | null;
  detail: string;
  remedy?: string;
}

export interface SimulatedContext {
  /** Where members of load balancers may be. */
  memberRules: MemberRules;
}

export interface DriverContext extends SimulatedContext {
  dataDir: string;
  /** Of this host, unique in its region. */
  hostName: string;
  /** Percent of the filesystem of the data directory that stays free. */
  diskReserve: number;
  log: Logger;
  /** What the registry serves with; null: not known yet, `configure` follows. */
  registryHosting: RegistryHosting | null;
  /** Opens the certificate from ACME if it is for this host; null: it is not. */
  acmeCertificateFor(host: string): (() => Promise<CertificateSource>) | null;
  /** The hosts that share the sessions of load balancers with this one. Absent: the region has one host. */
  peers?: Peers | null;
}

/** Why a driver is simulated, and the command that changes it. */
export interface Simulation {
  detail?: string | undefined;
  remedy?: string | undefined;
}

export interface HostProgram {
  name: string;
  package: string;
  /** The path; null: missing. Absent: `name` is searched in PATH. */
  find?(): string | null;
}

/** Both infer the types of an entry, and return it. */
export const hostDriver = <D extends HostDriver, S extends { driver: string }>(kind: HostDriverKind<D, S>) => kind;
export const deliveryDriver = <D, S>(kind: DeliveryDriverKind<D, S>) => kind;
