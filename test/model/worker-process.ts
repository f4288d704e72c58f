/**
 * A worker whose simulated hosts keep their state on disk, as real hosts do: one file for each resource below TEST_HOST. It
 * survives `kill -9`, and a test compares it with the rows.
 *
 * A file `crash-worker` there with the text `before` or `after` kills this process at its next call of a driver, so that a story
 * can repeat a crash between the work of a driver and its record.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostDriverKinds } from '../../src/drivers/kinds.ts';
import { DriverError } from '../../src/errors/driver-error.ts';

type Desired = { id: string; settledGib?: number | null; settled?: boolean };
type Call = (subject: never, signal: AbortSignal) => Promise<unknown>;
type AnyDriver = { apply: Call; remove: Call; quarantine: Call; snapshots?: AnyDriver };

const host = process.env['TEST_HOST']!;
const never = new AbortController().signal;

function crash(moment: 'before' | 'after'): void {
  const file = join(host, 'crash-worker');
  if (!existsSync(file) || readFileSync(file, 'utf8') !== moment) return;
  rmSync(file);
  process.kill(process.pid, 'SIGKILL');
}

/** Between two crash points, so that both fall into the call. */
async function crashable<T>(work: () => Promise<T>): Promise<T> {
  crash('before');
  const result = await work();
  crash('after');
  return result;
}

function durable(driver: AnyDriver, name: string): AnyDriver {
  const folder = join(host, name);
  mkdirSync(folder, { recursive: true });
  const file = (id: string) => join(folder, `${id}.json`);
  for (const each of readdirSync(folder)) {
    if (each.endsWith('.json')) void driver.apply(JSON.parse(readFileSync(join(folder, each), 'utf8')) as never, never);
  }
  const forget = (call: Call, id: string, signal: AbortSignal) =>
    crashable(async () => {
      await call.call(driver, id as never, signal);
      rmSync(file(id), { force: true });
    });
  const replaced: Record<string, unknown> = {
    real: true,
    apply: (desired: Desired, signal: AbortSignal) =>
      crashable(async () => {
        const wasMade = (desired.settledGib ?? null) !== null || desired.settled === true;
        if (wasMade && !existsSync(file(desired.id))) {
          throw new DriverError('the data is gone', { customerMessage: 'the data is gone', retryable: false });
        }
        const observed = await driver.apply(desired as never, signal);
        writeFileSync(`${file(desired.id)}.new`, JSON.stringify(desired));
        renameSync(`${file(desired.id)}.new`, file(desired.id));
        return observed;
      }),
    remove: (id: string, signal: AbortSignal) => forget(driver.remove, id, signal),
    quarantine: (id: string) => forget(driver.quarantine, id, never),
    ...(driver.snapshots && { snapshots: durable(driver.snapshots, 'snapshot') }),
  };
  return new Proxy(driver, {
    get: (target, key) => (Object.hasOwn(replaced, key) ? replaced[key as string] : Reflect.get(target, key)),
  });
}

type AnyKind = { simulated(...args: unknown[]): AnyDriver };
for (const [name, kind] of Object.entries(hostDriverKinds as unknown as Record<string, AnyKind>)) {
  const { simulated } = kind;
  kind.simulated = (...args) => {
    const driver = simulated(...args);
    // The driver of registries only removes.
    return 'apply' in driver ? durable(driver, name) : driver;
  };
}

await import('../../src/main/cloudyard.ts');
