/**
 * What a resource registers: each folder exports one of these from its index.ts, and list.ts names it in one line. The
 * API, quota usage, uses of a project, re-encryption, reconcilers, duties and injected faults are derived from them.
 *
 * A function declares the services that it needs in the type of its parameter. The types in list.ts collect them, so that
 * main/services.ts does not compile while one is missing.
 */
import type { EventSource } from '../events/source.ts';
import type { Routes } from '../http/app.ts';
import type { UsageOfRows } from '../quota/audit.ts';
import type { Duty } from '../tasks/duties.ts';
import type { Reconciler } from '../tasks/reconcile.ts';
import type { FindUses } from './service-kit.ts';

/** The options of a worker, in addition to its services. */
export interface DutyOptions {
  regionIds: number[];
  sweepSeconds: number;
  /** Seconds between two polls for work that is due. */
  pollSeconds: number;
}

/** What the resources register together, for operations that name it. */
export interface Names {
  /** The resources whose operations can fail on request in development mode. */
  faults: string[];
  /** The kinds of resources in events. */
  events: string[];
}

export interface Resource {
  operations(services: never, names: Names): Routes | Routes[];
  /** Its tables whose changes are events. */
  events: readonly EventSource[];
  usageOfRows?: UsageOfRows;
  usesOfProject?: FindUses<number>;
  /** Encrypts all ciphertexts with the current key. Returns the number that another key had encrypted. */
  reencrypt?(services: never): Promise<number>;
  /** Selects its driver from those of the host. */
  driver?(drivers: never): object;
  /** As faults of development mode name it; absent: its driver cannot fail on request. */
  faults?: string;
  reconciler?(services: never, driver: never): Reconciler;
  /** Periodic work of a worker. */
  duties?(services: never, driver: never): Duty[];
}

/** The driver of a resource and what uses it. The types of the three functions must agree on the driver. */
export const driverBacked = <Drivers, Driver extends object, Services, DutyServices>(backed: {
  driver(drivers: Drivers): Driver;
  faults?: string;
  reconciler(services: Services, driver: Driver): Reconciler;
  duties?(services: DutyServices, driver: Driver): Duty[];
}) => backed;

/** The functions of this name that `Registered` (a union of resources) has. */
type FunctionsOf<Registered, Name extends keyof Resource> = Registered extends infer Each
  ? Name extends keyof Each
    ? Each[Name]
    : never
  : never;

type Together<Function> = (
  Function extends (services: infer Services, ...rest: never[]) => unknown
    ? // An optional function that a resource does not have is inferred with `never`.
      [Services] extends [never]
      ? never
      : (services: Services) => void
    : never
) extends (services: infer All) => void
  ? All
  : never;

/** The first parameters of these functions, all together. */
export type ParametersOf<Registered, Name extends keyof Resource> = Together<FunctionsOf<Registered, Name>>;
