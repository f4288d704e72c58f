/** A region with 1,000 pools of 10 checked members: latency of an update, and recovery time after the loss of a worker. */
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Balancer, createBalancer, startBalancing, updateMembers } from './balancers.ts';
import { type Client, createClient } from './client.ts';
import type { Cloudyard } from './cloudyard.ts';
import { type Member, missingHaproxy, startMembers } from './proxies.ts';
import { quiet } from './quiet.ts';
import { median } from './rounds.ts';
import { liftQuotas } from './shares.ts';
import type { Row } from './table.ts';
import { startWorker } from './worker.ts';
import type { Workplace } from './workplace.ts';

const what = '1,000 pools of 10 members';
const balancers = 100;
const poolsOfEach = 10;
const membersOfEach = 10;
const createdAtOnce = 10;
const rounds = 3;
const updates = 30;
/** One of 25 pools is updated around the kill of the worker: half of them before it, half while no worker runs. */
const changingEvery = 25;
/** Long enough for the worker to run some of the updates. */
const killAfterMs = 60;
const requestEveryMs = 10;

type MemberOf = (n: number) => Member;

export async function fullRegion(workplace: Workplace): Promise<Row[]> {
  if (missingHaproxy) return [{ what, why: missingHaproxy }];
  const cloudyard = await startBalancing(workplace, 'serve');
  const worker = await startWorker(workplace, cloudyard);
  const member = await startMembers(workplace);
  await liftQuotas(cloudyard);
  const made = await createAll(cloudyard, member);
  const pools = made.flatMap((balancer) => balancer.pools);
  const client = createClient(cloudyard);
  const latencies: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await quiet();
    latencies.push(await updateSome(client, pools, member, round));
  }
  const traffic = startRequests(made[0]!.url);
  const change = (pool: string) => updateMembers(client, pool, membersOf(member, 7));
  const updated = pools.filter((_, i) => i % changingEvery === 0);
  const half = updated.length / 2;
  const early = updated.slice(0, half).map(change);
  await sleep(killAfterMs);
  await worker.kill();
  const late = updated.slice(half).map(change);
  const began = performance.now();
  await startWorker(workplace, cloudyard);
  await Promise.all([...early, ...late]);
  const recoverySeconds = (performance.now() - began) / 1000;
  const { answered, failed } = await traffic.stop();
  const failures = `${what}: of ${answered + failed} connections meanwhile`;
  return [
    { what: `${what}: update pool to FINISHED, p50`, values: latencies, unit: 'ms', bar: { atMost: 300 } },
    {
      what: `${what}: worker killed to all updates finished`,
      values: [recoverySeconds],
      unit: 's',
      bar: { atMost: 20 },
    },
    { what: failures, values: [failed], unit: 'failures', bar: { atMost: 0 } },
  ];
}

function membersOf(member: MemberOf, first: number): Member[] {
  return Array.from({ length: membersOfEach }, (_, i) => member(first + i));
}

async function createAll(cloudyard: Cloudyard, member: MemberOf): Promise<Balancer[]> {
  const made: Balancer[] = [];
  const pools = Array.from({ length: poolsOfEach }, (_, i) => membersOf(member, i * membersOfEach));
  const creator = async () => {
    while (made.length < balancers) {
      const at = made.push({ url: '', pools: [] }) - 1;
      made[at] = await createBalancer(cloudyard, pools, true);
    }
  };
  await Promise.all(Array.from({ length: createdAtOnce }, creator));
  return made;
}

/** Updates pools across the region sequentially. Returns the median in milliseconds. */
async function updateSome(client: Client, pools: string[], member: MemberOf, round: number): Promise<number> {
  const latencies: number[] = [];
  for (let i = 0; i < updates; i++) {
    const pool = pools[(i * 37 + round) % pools.length]!;
    latencies.push(await updateMembers(client, pool, membersOf(member, 5 + 10 * (round + 1))));
  }
  return median(latencies);
}

/** Sends requests on new connections at a steady rate. */
function startRequests(url: string): { stop(): Promise<{ answered: number; failed: number }> } {
  const all: Promise<boolean>[] = [];
  let stopped = false;
  const sending = (async () => {
    while (!stopped) {
      all.push(answers(url));
      await sleep(requestEveryMs);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await sending;
      const ended = await Promise.all(all);
      const answered = ended.filter(Boolean).length;
      return { answered, failed: ended.length - answered };
    },
  };
}

function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const sent = request(url, { agent: false, timeout: 2000 }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode === 200));
      response.once('error', () => resolve(false));
    });
    sent.once('error', () => resolve(false)).once('timeout', () => sent.destroy());
    sent.end();
  });
}
