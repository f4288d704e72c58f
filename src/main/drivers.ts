/** Detects, starts and describes the drivers of this host, all derived from drivers/kinds.ts. */
import type { EgressGap } from '../drivers/egress-filter.ts';
import type { Detection, DriverContext, HostDriverKind, SimulatedContext, Simulation } from '../drivers/kind.ts';
import { deliveryDriverKinds, type DeliveryDrivers, type Drivers, hostDriverKinds } from '../drivers/kinds.ts';
import { findBusyPort } from '../drivers/ports.ts';
import { findWorkedDirectory } from './data-directory-owner.ts';
import { endDriver, restartingDriver } from '../drivers/restarting.ts';
import { withShortages } from '../drivers/shortages.ts';
import type { Clock } from '../platform/clock.ts';
import { detailOf, type DriverStatus } from '../platform/driver-status.ts';
import type { ControlPlaneEndpoint, OwnPort } from '../platform/own-ports.ts';
import { remedyFor, withOwnRemedy } from './remedy.ts';
import type { Settings } from './settings.ts';

type AnyDriver = Drivers[keyof Drivers];
type AnySettings = { driver: string };
type AnyKind = HostDriverKind<AnyDriver, AnySettings>;
type KindName = keyof Drivers;
/** The settings that detection reads. */
type DriverOptions = Pick<Settings, 'drivers' | 'dataDir'>;

const kindNames = Object.keys(hostDriverKinds) as KindName[];
const deliveryNames = Object.keys(deliveryDriverKinds) as (keyof DeliveryDrivers)[];

/** An entry of kinds.ts with its settings. */
interface Entry {
  name: KindName;
  kind: AnyKind;
  settings: AnySettings;
}

/** The types of one entry match; the compiler cannot know that. */
function entryOf(name: KindName, { drivers }: Pick<Settings, 'drivers'>): Entry {
  return { name, kind: hostDriverKinds[name] as unknown as AnyKind, settings: drivers[name] };
}

const entries = (settings: Pick<Settings, 'drivers'>) => kindNames.map((name) => entryOf(name, settings));

/**
 * Starts the drivers side by side. One that does not start and must be real is started again with backoff, while the others
 * serve.
 * @throws before any driver starts, if this host lacks a driver that the settings name and has no data of that kind
 */
export async function startDrivers(settings: Settings, context: DriverContext): Promise<Drivers> {
  const choices = await Promise.all(entries(settings).map((entry) => requireDriver(entry, settings.dataDir)));
  const started = await Promise.all(
    choices.map(async (choice) => [choice.name, await startDriver(choice, context)] as const),
  );
  return Object.fromEntries(started) as Drivers;
}

/** Starts the driver of one kind; see `startDrivers`. */
export async function startOneDriver<Name extends KindName>(
  name: Name,
  settings: Settings,
  context: DriverContext,
): Promise<Drivers[Name]> {
  const choice = await requireDriver(entryOf(name, settings), settings.dataDir);
  return (await startDriver(choice, context)) as Drivers[Name];
}

/** A simulated driver of one kind, and why. */
export function simulatedDriver<Name extends KindName>(
  name: Name,
  settings: Pick<Settings, 'drivers'>,
  context: SimulatedContext,
  why: Simulation,
): Drivers[Name] {
  const { kind, settings: own } = entryOf(name, settings);
  return kind.simulated(own, context, why) as Drivers[Name];
}

/** Whether this host has data of any kind, whose data plane must survive a failed start. */
export async function hasDataPlane(settings: DriverOptions): Promise<boolean> {
  const found = await Promise.all(entries(settings).map(({ kind }) => kind.hasData(settings.dataDir)));
  return found.includes(true);
}

interface Choice extends Entry {
  /** What this host can run; null: the setting is `simulated`. */
  found: Detection<AnyDriver> | null;
  /** An operator who has data gets an error instead of a simulated driver that does not serve it. */
  mustBeReal: boolean;
}

async function chooseDriver(entry: Entry, dataDir: string): Promise<Choice> {
  const { kind, settings } = entry;
  if (settings.driver === 'simulated') return { ...entry, found: null, mustBeReal: false };
  const mustBeReal = settings.driver !== 'auto' || (await kind.hasData(dataDir));
  return { ...entry, found: kind.detect(settings), mustBeReal };
}

/** As `chooseDriver`. @throws if this host lacks the driver that the setting names, and has no data of the kind */
async function requireDriver(entry: Entry, dataDir: string): Promise<Choice> {
  const choice = await chooseDriver(entry, dataDir);
  const { kind, settings, found } = choice;
  const isMissing = found !== null && !found.create && settings.driver !== 'auto';
  if (isMissing && !(await kind.hasData(dataDir))) throw new Error(missing(kind, found));
  return choice;
}

function missing({ setting }: AnyKind, { detail, remedy }: Detection<AnyDriver>): string {
  return `${detail}; to fix it: ${remedyFor(remedy ?? `${setting}=simulated npm start`)}`;
}

async function startDriver(choice: Choice, context: DriverContext): Promise<AnyDriver> {
  const { kind, settings, found, mustBeReal } = choice;
  const { dataDir, log } = context;
  const { title } = kind;
  if (!found) return kind.simulated(settings, context, simulatedBySetting(kind));
  if (!found.create && !mustBeReal) return kind.simulated(settings, context, found);
  const create = () => createReal(kind, settings, context);
  const start = async (driver: AnyDriver) => {
    await driver.start();
    await kind.configure?.(driver, context);
    return withShortages(driver);
  };
  const findBusy = () => findBusyPort(kind.ports?.(settings) ?? [], dataDir);
  let driver: AnyDriver | null = null;
  try {
    driver = create();
    return await start(driver);
  } catch (failure) {
    const error = failure as Error;
    if (mustBeReal) {
      if (driver) await endDriver(driver, 'keepDataPlanes').catch(() => {});
      const idle = kind.simulated(settings, context, {});
      const findRemedy = async () => (await findBusy())?.remedy;
      const first = { title, name: found.driver, error, failed: driver, remedy: await findRemedy() };
      return restartingDriver({ ...first, findRemedy, create, start, idle, log });
    }
    await driver?.stop().catch(() => {});
    const busy = await findBusy();
    const detail = busy?.detail ?? detailOf(error);
    log.warn({ kind: title, driver: found.driver, detail }, 'the driver did not start; a simulated one replaces it');
    return kind.simulated(settings, context, { detail, remedy: busy?.remedy ?? kind.repair?.(dataDir) });
  }
}

/** @throws if this host cannot run it */
function createReal(kind: AnyKind, settings: AnySettings, context: DriverContext): AnyDriver {
  const found = kind.detect(settings);
  if (!found.create) throw new Error(missing(kind, found));
  return found.create(context);
}

const simulatedBySetting = ({ setting }: AnyKind) => ({
  detail: `${setting} is simulated`,
  remedy: `${setting}=auto npm start`,
});

/** A simulated driver of every kind, and why. */
export function simulatedDrivers(
  settings: Pick<Settings, 'drivers'>,
  context: SimulatedContext,
  why: Simulation = {},
): Drivers {
  return Object.fromEntries(kindNames.map((name) => [name, simulatedDriver(name, settings, context, why)])) as Drivers;
}

/** What `start` would choose on this host, by kind, without starting anything, and what a running worker uses. */
export async function detectDrivers(
  settings: DriverOptions,
  egressGap: EgressGap | null,
): Promise<Record<string, DriverStatus>> {
  const found = entries(settings).map(async (entry) => {
    const status = await detectDriver(entry, settings.dataDir);
    const gap = status.real && entry.kind.needsEgressFilter ? egressGap : null;
    return [entry.kind.title, gap ? withGap(status, gap) : status] as const;
  });
  return Object.fromEntries(await Promise.all(found));
}

async function detectDriver(entry: Entry, dataDir: string): Promise<DriverStatus> {
  const { kind, settings, found, mustBeReal } = await chooseDriver(entry, dataDir);
  const simulated = { driver: 'simulated', real: false, healthy: true };
  if (!found) return { ...simulated, ...simulatedBySetting(kind) };
  const { driver, create, detail, remedy } = found;
  const busy = create && (await findBusyPort(kind.ports?.(settings) ?? [], dataDir));
  // `doctor` with the data directory of the API server, beside a worker with another one.
  const worked = busy && busy.pid !== null ? findWorkedDirectory(busy.pid) : null;
  if (worked !== null) return { driver, real: true, healthy: true, detail: `used by the worker of ${worked}` };
  const problem = create ? busy : found;
  if (!problem) return { driver, real: true, healthy: true, detail, remedy };
  const status = mustBeReal ? { driver, real: true, healthy: false } : simulated;
  return { ...status, detail: problem.detail, remedy: problem.remedy };
}

/** Adds a gap of the egress filter to a status. */
export function withGap(status: DriverStatus, gap: EgressGap): DriverStatus {
  const remedy = [status.remedy, gap.remedy].filter((each) => each !== undefined).join(' && ');
  return { ...status, detail: `${status.detail}; ${gap.detail}`, remedy };
}

/** The status of running drivers by title; `annotate` is applied where the egress filter is needed. */
export function driverStatuses(
  drivers: Drivers,
  annotate: (status: DriverStatus) => DriverStatus = (status) => status,
): Record<string, DriverStatus> {
  return Object.fromEntries(
    kindNames.map((name) => {
      const { title, needsEgressFilter } = hostDriverKinds[name];
      const status = drivers[name].status();
      return [title, withOwnRemedy(needsEgressFilter ? annotate(status) : status)];
    }),
  );
}

/** The ports of all drivers, which members of load balancers must not reach. */
export function driverPorts({ drivers }: Pick<Settings, 'drivers'>): OwnPort[] {
  return declarations(drivers).flatMap(({ kind, settings }) => kind.ports?.(settings) ?? []);
}

/** The hosts that the drivers depend on, which members must not reach either. */
export function driverEndpoints({ drivers }: Pick<Settings, 'drivers'>): ControlPlaneEndpoint[] {
  return declarations(drivers).flatMap(({ kind, settings }) => kind.endpoints?.(settings) ?? []);
}

function declarations(drivers: Settings['drivers']) {
  const kinds = { ...hostDriverKinds, ...deliveryDriverKinds };
  return (Object.keys(kinds) as (keyof typeof kinds)[]).map((name) => ({
    kind: kinds[name] as Pick<AnyKind, 'ports' | 'endpoints'>,
    settings: drivers[name] as AnySettings,
  }));
}

/** Whether a program with an account of its own runs, to which the egress filter applies. */
export function usesEgressFilter(settings: Pick<Settings, 'drivers'>): boolean {
  return entries(settings).some((entry) => entry.kind.accounts && entry.settings.driver !== 'simulated');
}

/** The drivers that send notifications. They belong to no host: every process has them. */
export function createDeliveryDrivers({ drivers }: Pick<Settings, 'drivers'>, clock: Clock): DeliveryDrivers {
  const created = deliveryNames.map((name) => {
    const kind = deliveryDriverKinds[name] as { create(settings: unknown, context: Clock): unknown };
    return [name, kind.create(drivers[name], clock)];
  });
  return Object.fromEntries(created) as DeliveryDrivers;
}

/** The status of the drivers that send notifications, by title. */
export function deliveryStatuses(drivers: DeliveryDrivers): Record<string, DriverStatus> {
  return Object.fromEntries(
    deliveryNames.map((name) => [deliveryDriverKinds[name].title, withOwnRemedy(drivers[name].status())]),
  );
}
