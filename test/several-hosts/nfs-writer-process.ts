/**
 * A client of NFS in a process of its own, in the namespace of a client; nfs-hosts.ts calls it. It opens and locks a file and
 * writes to it forty times a second at most, and reclaims both when the server was replaced.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Channel, openCalls } from '../../src/platform/process-calls.ts';
import { nfs41Client, type Nfs41Client, NfsError, type OpenFile } from './nfs41-client.ts';

export interface WriterReport {
  writes: number;
  /** From a write to the next one, since the last `report`. */
  longestGapMs: number;
  /** How often open and lock were reclaimed from another server, since the last `report`. */
  reclaims: number;
  /** Writes that a server which was fenced refused, and which were repeated; since the last `report`. */
  refusals: number;
  /** Why it does not write any more; null: it writes. */
  failure: string | null;
}

const RECORD_BYTES = 8;
const RETRY_MS = 25;
/** Writes without a pause would take the CPU time of the servers that the test measures. */
const PAUSE_MS = 25;
const CHUNK_BYTES = 65_536;
const TIMEOUT_MS = 1000;
const retried = new Set(['GRACE', 'DELAY', 'SERVERFAULT']);
/** The server does not know the session: it was replaced. */
const replaced = new Set([
  'BADSESSION',
  'STALE_CLIENTID',
  'DEADSESSION',
  'SEQ_MISORDERED',
  'STALE_STATEID',
  'BAD_STATEID',
]);

let client: Nfs41Client;
let file: OpenFile;
let folder: Buffer;
let [writes, reclaims, refusals, longestGapMs, lastWrite] = [0, 0, 0, 0, 0];
let failure: string | null = null;
let isStopped = false;
let ended: Promise<void> = Promise.resolve();

openCalls(process as Channel, {
  async open({ host, share, name, lock }: { host: string; share: string; name: string; lock: boolean }) {
    client = nfs41Client({ host, owner: name, timeoutMs: TIMEOUT_MS });
    await retrying(client.openSession);
    await retrying(client.reclaimComplete);
    folder = await retrying(() => client.lookup(share));
    file = await retrying(() => client.open(folder, name));
    if (lock) await retrying(() => client.lock(file));
  },
  /** Writes until `stop`, or until an error that a client would report to its program. */
  write() {
    lastWrite = performance.now();
    ended = writeOn();
  },
  progress,
  /** As `progress`; gap and reclaims of the next one count from here. */
  report(): WriterReport {
    const report = progress();
    [longestGapMs, reclaims, refusals] = [0, 0, 0];
    return report;
  },
  async stop() {
    isStopped = true;
    await ended;
  },
  /** Whether the file has exactly what was written. */
  async verify() {
    const expected = Buffer.from(Array.from({ length: writes }, (_, at) => recordOf(at)).join(''));
    const chunks: Buffer[] = [];
    for (let at = 0; at < expected.length; at += CHUNK_BYTES) {
      chunks.push(await retrying(() => client.read(file, at, CHUNK_BYTES)));
    }
    return Buffer.concat(chunks).equals(expected);
  },
  /** Writes once. Returns the status of the server, or the reason of a failure; null: written. */
  async writeOnce(text: string) {
    try {
      await client.write(file, writes * RECORD_BYTES, Buffer.from(text));
      return null;
    } catch (err) {
      return err instanceof NfsError ? err.status : (err as Error).message;
    }
  },
  /** Without opening a file, which a grace period delays. Returns why the share is not reached; null: it is reached. */
  async lookUp({ host, share, name }: { host: string; share: string; name: string }) {
    const visitor = nfs41Client({ host, owner: name, timeoutMs: TIMEOUT_MS });
    try {
      await visitor.openSession();
      await visitor.lookup(share);
      await visitor.leave();
      return null;
    } catch (err) {
      return err instanceof NfsError ? err.status : (err as Error).message;
    } finally {
      visitor.disconnect();
    }
  },
  /** Writes a byte at a place. Returns the status of the server; null: written. */
  async writeAt({ offset }: { offset: number }) {
    try {
      await retrying(() => client.write(file, offset, Buffer.from('x')));
      return null;
    } catch (err) {
      if (err instanceof NfsError) return err.status;
      throw err;
    }
  },
  /** The server that it reaches now, which may be another one than before, forgets the client. */
  async leave() {
    await client.close(file).catch(async () => {
      client.disconnect();
      await retrying(client.openSession);
      await retrying(client.reclaimComplete);
    });
    await retrying(client.leave);
  },
});
process.once('disconnect', () => process.exit());

function progress(): WriterReport {
  return { writes, longestGapMs: Math.round(Math.max(longestGapMs, sinceLast())), reclaims, refusals, failure };
}

const sinceLast = () => (isStopped || lastWrite === 0 ? 0 : performance.now() - lastWrite);
const recordOf = (at: number) => `${String(at).padStart(RECORD_BYTES - 1, '0')}\n`;

async function writeOn(): Promise<void> {
  while (!isStopped) {
    try {
      await client.write(file, writes * RECORD_BYTES, Buffer.from(recordOf(writes)));
      writes += 1;
      longestGapMs = Math.max(longestGapMs, performance.now() - lastWrite);
      lastWrite = performance.now();
      await sleep(PAUSE_MS);
    } catch (err) {
      if (err instanceof NfsError && err.status === 'SERVERFAULT') refusals += 1;
      if (isTransient(err)) await sleep(RETRY_MS);
      else if (err instanceof NfsError && replaced.has(err.status)) await recover();
      else failure = (err as Error).message;
      if (failure !== null) return;
    }
  }
}

/** Reclaims the open file and its lock from the server that took over. */
async function recover(): Promise<void> {
  for (;;) {
    try {
      await client.openSession();
      file = await client.reclaimOpen(file);
      await client.lock(file, { reclaim: true });
      await client.reclaimComplete();
      reclaims += 1;
      return;
    } catch (err) {
      if (!isTransient(err) && !(err instanceof NfsError && replaced.has(err.status))) {
        failure = `not reclaimed: ${(err as Error).message}`;
        return;
      }
      await sleep(RETRY_MS);
    }
  }
}

async function retrying<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (err) {
      if (!isTransient(err)) throw err;
      await sleep(RETRY_MS);
    }
  }
}

/** The server is not reachable, or requests to try again. */
function isTransient(err: unknown): boolean {
  return !(err instanceof NfsError) || retried.has(err.status);
}
