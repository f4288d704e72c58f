import type { DriverStatus } from '../platform/driver-status.ts';

export { DriverError } from '../errors/driver-error.ts';
export type { DriverStatus };

/**
 * What makes a resource real. A driver knows one host and one kind of thing; it never sees the database, a task or a
 * resource folder. Invariants that every driver keeps, and that contract.test.ts holds against each:
 *
 * - `apply` and `remove` are idempotent: a crash at any instant is cured by calling them again with the same argument.
 * - When `apply` resolves, what it was asked is so in the real world and will survive a crash of the host.
 * - A call about one id never disturbs another id.
 */
export interface Driver<Desired extends { id: string }, Observed> {
  readonly name: string;
  /** True when a user can touch the result (mount it, connect to it); false when it only pretends. */
  readonly real: boolean;
  /** What the start-up table, `GET /healthz/drivers` and `doctor` say. */
  status(): DriverStatus;
  /** Brings back all that this host had, before the first `apply`. Called once. */
  start(): Promise<void>;
  /** Stops every process that the driver started. What was applied comes back at the next `start`. */
  stop(): Promise<void>;
  /** Lets go instead: what serves users goes on, and the next `start` adopts it. Left out where nothing serves. */
  release?(): Promise<void>;
  /** Makes the world as desired. @throws DriverError */
  apply(desired: Desired, signal: AbortSignal): Promise<Observed>;
  /** Removes the thing and its data; resolves as well when there is no such thing. @throws DriverError */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /** Ids of everything that exists on this host, so that what has no row can be found. */
  list(): Promise<string[]>;
  /** Takes a thing without a row out of service but keeps its data aside, for an operator to look at. */
  quarantine(id: string): Promise<void>;
}
