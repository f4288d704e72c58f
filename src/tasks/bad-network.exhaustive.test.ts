/**
 * A bad network between Cloudyard (API and worker) and PostgreSQL. Requests succeed or say that the database is unavailable;
 * when the network is good again, every acknowledged create has been done once. A small proxy in this process degrades the
 * network: toxiproxy would be one more program to install and to control, for the same faults.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, inject, it, type TestContext } from 'vitest';
import { drift, type Gate, openGate, retryNow } from '../../test/crash-harness.ts';
import { createTestHost } from '../../test/drivers.ts';
import { type Answer, type Cloudyard, openCloudyard } from '../../test/harness.ts';
import { networkOf, shares, soon, stateOf, truth, valid } from '../../test/worker.ts';

interface Fault {
  /** What happens while the first creates are on their way. */
  begin(gate: Gate, cloud: Cloudyard): Promise<unknown> | void;
  /** What ends it; absent: the creates finish nevertheless. */
  end?(gate: Gate): Promise<unknown> | void;
  /** Whether the fault has had an effect, so that it may end. */
  isFelt?(felt: { acknowledged: number; refused: number; dropped: number }): boolean;
}

const cutAndRestore = async (gate: Gate) => {
  await gate.cut();
  await gate.restore();
};

/** Ends all connections on the side of PostgreSQL. */
const endBackends = ({ db }: Cloudyard) =>
  db.$client
    .query(
      `select count(pg_terminate_backend(pid)) from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid()`,
    )
    .catch(() => undefined);

const faults: Record<string, Fault> = {
  'a latency of 200 ms in each direction': { begin: (gate) => gate.degrade({ latencyMs: 200 }) },
  'a latency of 200 ms and 8 KB/s in each direction': {
    begin: (gate) => gate.degrade({ latencyMs: 200, bytesPerSecond: 8192 }),
  },
  '1 KB/s in each direction': {
    begin: (gate) => gate.degrade({ bytesPerSecond: 1024 }),
    end: (gate) => gate.degrade({}),
    isFelt: ({ acknowledged }) => acknowledged >= 2,
  },
  'a cut': { begin: (gate) => gate.cut(), end: (gate) => gate.restore(), isFelt: ({ refused }) => refused > 0 },
  'half-open connections, which are reset later': {
    begin: (gate) => gate.silence(),
    end: cutAndRestore,
    isFelt: ({ dropped }) => dropped > 0,
  },
  'connections whose end arrives seconds later': {
    begin(gate, cloud) {
      gate.degrade({ closeMs: 3000 });
      return endBackends(cloud);
    },
  },
};

const clients = 6;

async function openBehindGate(t: TestContext) {
  const gate = await openGate(inject('postgres'));
  const host = createTestHost();
  const { cloudyard: cloud, stop } = await openCloudyard(gate.connection, { driver: host });
  t.onTestFinished(async () => {
    gate.degrade({});
    // A stop waits for statements, and those of silent connections do not end.
    if (t.task.result?.state === 'fail') await cutAndRestore(gate);
    await stop();
  });
  return { gate, host, cloud };
}

describe.concurrent.each(Object.entries(faults))('%s', (_name, { begin, end, isFelt }) => {
  it('between Cloudyard and PostgreSQL loses nothing and doubles nothing', { timeout: 120_000 }, async (t) => {
    const { expect } = t;
    const { gate, host, cloud } = await openBehindGate(t);
    const body = { ...valid, network: { network_id: await networkOf(cloud) } };
    const felt = { acknowledged: 0, refused: 0 };
    const insist = async (key: string): Promise<Answer> => {
      for (;;) {
        const answer = await cloud.post(shares, body, { headers: { 'idempotency-key': key } });
        if (answer.status === 200) {
          felt.acknowledged += 1;
          return answer;
        }
        expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
        felt.refused += 1;
        // Otherwise the requests of one case take the CPU time of the others, which run beside it.
        await sleep(50);
      }
    };
    const first = Array.from({ length: clients }, () => insist(randomUUID()));
    await begin(gate, cloud);
    const second = Array.from({ length: clients }, () => insist(randomUUID()));
    if (end) {
      await expect.poll(() => isFelt?.({ ...felt, dropped: gate.dropped() }), soon).toBe(true);
      await end(gate);
    }
    for (const answer of await Promise.all([...first, ...second])) {
      const state = async () => {
        await retryNow(cloud.db).catch(() => undefined);
        return stateOf(cloud, answer)();
      };
      await expect.poll(state, { timeout: 60_000, interval: 50 }).toBe('FINISHED');
    }
    gate.degrade({});
    expect((await cloud.get(shares)).body.count).toBe(2 * clients);
    expect(host.shares.size).toBe(2 * clients);
    expect(host.overlap).toBe(1);
    expect(await drift(cloud.db, truth)).toEqual([]);
  });
});
