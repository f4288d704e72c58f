import type { DriverStatus } from '../platform/driver-status.ts';

export { DriverError } from '../errors/driver-error.ts';

/**
 * Makes resources real on one host. A driver handles one kind of resource, and never uses the database, a task or a resource
 * folder. Invariants, which the contract tests (*.contract.test.ts) check:
 *
 * - `apply` and `remove` are idempotent: after a crash at any instant, a second call with the same argument completes them.
 * - When `apply` resolves, the desired state exists and survives a crash of the host.
 * - A call for one id never affects another id.
 */
export interface Driver<Desired extends { id: string }, Observed> {
  readonly name: string;
  /** True: users can use the result (mount it, connect to it). False: simulated. */
  readonly real: boolean;
  /** For the start table, `GET /healthz/drivers` and `doctor`. Reads memory only. */
  status(): DriverStatus;
  /**
   * Restores everything that this host had. Called once, before the first `apply`. If it rejects, the caller stops or
   * releases the driver.
   */
  start(): Promise<void>;
  /** Stops every process of the driver, also after `release`. The next `start` restores what was applied. */
  stop(): Promise<void>;
  /** Instead of `stop`: processes that serve users keep running, and the next `start` adopts them. Absent if there are none. */
  release?(): Promise<void>;
  /** Brings the host to the desired state. @throws DriverError */
  apply(desired: Desired, signal: AbortSignal): Promise<Observed>;
  /** Removes the resource and its data; resolves also if it does not exist. @throws DriverError */
  remove(id: string, signal: AbortSignal): Promise<void>;
  /** Ids of everything on this host, to find resources without a row. */
  list(): Promise<string[]>;
  /**
   * Ids on this host that are not served, or whose files are missing or damaged, and that an `apply` may repair. Absent: every
   * `apply` checks everything that the resource needs, and nothing else can damage it.
   */
  findDamaged?(): Promise<string[]>;
  /** Stops serving a resource that has no row, and keeps its data for the operator to inspect. */
  quarantine(id: string): Promise<void>;
}
