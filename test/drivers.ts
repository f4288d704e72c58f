/**
 * An in-memory host of file shares that a test can inspect, block, fail and change. Keeps the invariants of every driver:
 * idempotent, grows and never shrinks, calls for one share never change another share.
 */
import type { DesiredFileShare, FileShareDriver, FileShareUsage } from '../src/drivers/file-share.ts';
import { DriverError } from '../src/errors/driver-error.ts';

export interface DriverCall {
  method: 'apply' | 'remove';
  id: string;
  /** The desired state of an `apply`. */
  desired?: DesiredFileShare;
}

/** An injected failure: none, before the work, or after it (`done`). */
export type Trouble = null | { error: Error; done: boolean };

export type Steering<Call extends { id: string }> = ReturnType<typeof createSteering<Call>>;

/** Control of a test over the calls of a host. */
export function createSteering<Call extends { id: string }>() {
  const held: Call[] = [];
  const running = new Map<string, number>();
  let overlap = 0;
  let gate: Promise<void> | null = null;
  let decide: (call: Call) => Trouble = () => null;
  return {
    /** Calls that are blocked now. */
    held,
    /** Maximum number of concurrent calls for one id. Above one, jobs of one resource overlapped. */
    get overlap() {
      return overlap;
    },
    /** Runs the work of a call under the control of the test. */
    async call(mine: Call, signal: AbortSignal, work: () => void): Promise<void> {
      const { id } = mine;
      running.set(id, (running.get(id) ?? 0) + 1);
      overlap = Math.max(overlap, running.get(id)!);
      try {
        if (gate) {
          held.push(mine);
          await gate;
          held.splice(held.indexOf(mine), 1);
        }
        signal.throwIfAborted();
        const trouble = decide(mine);
        if (!trouble || trouble.done) work();
        if (trouble) throw trouble.error;
      } finally {
        running.set(id, running.get(id)! - 1);
      }
    },
    /** Blocks every call until the returned function is called. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return () => {
        gate = null;
        resolve();
      };
    },
    /** Blocks no new calls; blocked calls remain blocked. */
    admit(): void {
      gate = null;
    },
    /** Decides about failures of later calls; without an argument, none fails. */
    trouble(next: (call: Call) => Trouble = () => null): void {
      decide = next;
    },
  };
}

export interface TestHost extends FileShareDriver, Steering<DriverCall> {
  /** Shares on the host and in quarantine. A test may add and remove shares. */
  readonly shares: Map<string, DesiredFileShare>;
  readonly quarantined: Map<string, DesiredFileShare>;
  /** What `findDamaged` returns; an `apply` repairs it. */
  readonly damaged: Set<string>;
  /** Every completed `apply`, oldest first. */
  readonly log: DesiredFileShare[];
  /** What `usage` returns. */
  readonly space: Map<string, FileShareUsage>;
}

/** `real` makes the engine scan for drift, as on hosts whose shares survive a restart. */
export function createTestHost({ real = false } = {}): TestHost {
  const shares = new Map<string, DesiredFileShare>();
  const quarantined = new Map<string, DesiredFileShare>();
  const damaged = new Set<string>();
  const log: DesiredFileShare[] = [];
  const steering = createSteering<DriverCall>();
  const host: Omit<TestHost, keyof Steering<DriverCall>> = {
    name: 'test',
    real,
    shares,
    quarantined,
    damaged,
    log,
    space: new Map(),
    status: () => ({ driver: 'test', real, healthy: true, detail: 'a host in memory' }),
    start: async () => undefined,
    stop: async () => undefined,
    async apply(desired, signal) {
      await steering.call({ method: 'apply', id: desired.id, desired }, signal, () => {
        const sizeGib = Math.max(desired.sizeGib, shares.get(desired.id)?.sizeGib ?? 0);
        shares.set(desired.id, structuredClone({ ...desired, sizeGib, settledGib: null }));
        log.push(structuredClone(desired));
        damaged.delete(desired.id);
      });
      return { connectionPoint: `host:/${desired.id}`, sizeGib: shares.get(desired.id)!.sizeGib };
    },
    async remove(id, signal) {
      await steering.call({ method: 'remove', id }, signal, () => shares.delete(id));
    },
    list: async () => [...shares.keys()],
    findDamaged: async () => [...damaged],
    usage: async () => host.space,
    async quarantine(id) {
      const share = shares.get(id);
      if (share) quarantined.set(id, share);
      shares.delete(id);
    },
  };
  return Object.defineProperties(host, Object.getOwnPropertyDescriptors(steering)) as TestHost;
}

export const terminal = (customerMessage = 'there is no space left on the host') =>
  new DriverError('terminal, for a test', { customerMessage, retryable: false });

export const passing = (customerMessage = 'the host is busy') =>
  new DriverError('retryable, for a test', { customerMessage, retryable: true });
