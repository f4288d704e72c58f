/** Streams of events: memory and latency of 500, and what the announcements cost a create. Simulated drivers. */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cloudyard, startCloudyard } from './cloudyard.ts';
import { requestsPerSecond } from './load.ts';
import { untilIdle } from './path.ts';
import { interleave, quantile, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { liftQuotas, shareLoad } from './shares.ts';
import type { Row } from './table.ts';
import { cpuTimeOf, residentMegabytes } from './usage.ts';
import { createWorkplace, type Workplace } from './workplace.ts';

const streams = 500;
const changes = 50;
const changeMs = 100;
const rounds = 5;
const connections = 16;
const seconds = 3;
const settledSeconds = 15;

export async function events(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'start' });
  await liftQuotas(cloudyard);
  const { db } = await openServices(workplace, cloudyard);
  // The server compiles most of its code.
  const load = await shareLoad(cloudyard);
  await requestsPerSecond(workplace, { ...load, connections, seconds });
  await untilIdle(db);
  const before = await settledMegabytes(cloudyard.pid);
  const { arrivals, close } = await openStreams(cloudyard);
  const delays: number[] = [];
  for (let i = 0; i < changes; i++) {
    const began = performance.now();
    const { id } = await cloudyard.request('POST', '/cloud/v1/projects', { name: `change ${i}` });
    while ((arrivals.get(String(id))?.length ?? 0) < streams) await sleep(5);
    delays.push(...arrivals.get(String(id))!.map((at) => at - began));
    await sleep(changeMs);
  }
  const after = residentMegabytes(cloudyard.pid);
  close();
  await cloudyard.stop();
  const what = `${streams} event streams`;
  return [
    { what: `memory of ${what}`, values: [after - before], unit: 'MB', bar: { atMost: 60 } },
    {
      what: `from a request to its event in ${what}, p95`,
      values: [quantile(delays, 0.95)],
      unit: 'ms',
      bar: { atMost: 1000 },
    },
    await costOfEvents(workplace),
  ];
}

/** When each stream received the event that a project was created, by the id of the project. */
async function openStreams({ url, headers }: Cloudyard, count = streams) {
  const arrivals = new Map<string, number[]>();
  const requests: ClientRequest[] = [];
  for (let i = 0; i < count; i++) {
    const sent = request(`${url}/cloudyard/v1/events`, { headers, agent: false }).end();
    sent.on('error', () => {});
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    if (response.statusCode !== 200) throw new Error(`stream ${i}: ${response.statusCode}`);
    response.on('error', () => {});
    response.setEncoding('utf8').on('data', (text: string) => {
      for (const [, id] of text.matchAll(/"kind":"project","resource_id":"(\d+)","change":"created"/g)) {
        arrivals.set(id!, [...(arrivals.get(id!) ?? []), performance.now()]);
      }
    });
    requests.push(sent);
  }
  return { arrivals, close: () => requests.forEach((sent) => sent.destroy()) };
}

/** CPU time of Node and PostgreSQL for a create to FINISHED, with an open stream and without, on separate servers. */
async function costOfEvents(workplace: Workplace): Promise<Row> {
  const silent = await costOfCreate(workplace);
  const open = await costOfCreate(workplace);
  const { close } = await openStreams(open.cloudyard, 1);
  const measured = await interleave(rounds, { open: open.measure, silent: silent.measure });
  close();
  const average = (values: number[]) => `${quantile(values, 0.5).toFixed(2)} ms`;
  return {
    what: 'CPU time of a create to FINISHED, with an event stream / without',
    values: ratios(measured.open, measured.silent),
    measured: average(measured.open),
    peer: average(measured.silent),
    unit: 'ratio',
    bar: { atMost: 1.5 },
  };
}

async function costOfCreate(workplace: Workplace) {
  const own = createWorkplace();
  workplace.closing(own.clear);
  const cloudyard = await startCloudyard(own, { command: 'start' });
  await liftQuotas(cloudyard);
  const { db } = await openServices(own, cloudyard);
  const cpuTime = await cpuTimeOf(cloudyard);
  const ofServer = () => cpuTime().node + cpuTime().postgres;
  const load = await shareLoad(cloudyard);
  const count = async () =>
    (await db.$client.query(`select count(*) as count from tasks where state = 'FINISHED'`)).rows[0].count;
  const measure = async () => {
    const [finished, used] = [await count(), ofServer()];
    await requestsPerSecond(own, { ...load, connections, seconds });
    await untilIdle(db);
    return (ofServer() - used) / ((await count()) - finished);
  };
  await measure();
  return { cloudyard, measure };
}

/** The memory after the garbage collector has released that of the previous load: once it stops falling. */
async function settledMegabytes(pid: number): Promise<number> {
  let [lowest, unchanged] = [residentMegabytes(pid), 0];
  while (unchanged < settledSeconds) {
    await sleep(1000);
    const now = residentMegabytes(pid);
    unchanged = now < lowest - 1 ? 0 : unchanged + 1;
    lowest = Math.min(lowest, now);
  }
  return lowest;
}
