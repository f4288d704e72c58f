/** From the request for a share to the news that its task is FINISHED, as a client with a clock sees it. */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCloudyard } from './cloudyard.ts';
import type { Cloudyard } from './cloudyard.ts';
import { quiet } from './quiet.ts';
import { quantile } from './rounds.ts';
import { liftQuotas, newShare, sharesPath } from './shares.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const perSecond = 50;
const rounds = 3;
const seconds = 5;
const warmUpSeconds = 3;

export async function finishShare(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'start' });
  await liftQuotas(cloudyard);
  const client = createClient(cloudyard);
  const body = JSON.stringify(await newShare(cloudyard));
  await latencies(client, body, warmUpSeconds);
  const measured: number[][] = [];
  for (let round = 0; round < rounds; round++) {
    await quiet();
    measured.push(await latencies(client, body, seconds));
  }
  const row = (what: string, q: number, bar: number): Row => ({
    what: `create to FINISHED at ${perSecond}/s, ${what}`,
    values: measured.map((round) => quantile(round, q)),
    unit: 'ms',
    bar: { atMost: bar },
  });
  return [row('p50', 0.5, 30), row('p99', 0.99, 150)];
}

/** At a steady pace, however long the answers take. */
async function latencies(client: Client, body: string, length: number): Promise<number[]> {
  const began = performance.now();
  const shares = Array.from({ length: length * perSecond }, async (_, i) => {
    await sleep(Math.max(0, began + (i * 1000) / perSecond - performance.now()));
    return latencyOfOne(client, body);
  });
  return Promise.all(shares);
}

async function latencyOfOne(client: Client, body: string): Promise<number> {
  const began = performance.now();
  const { tasks } = await client('POST', sharesPath, body);
  const task = await client('GET', `/cloud/v1/tasks/${tasks[0]}?wait=30`);
  if (task.state !== 'FINISHED') throw new Error(`the task is ${task.state}: ${task.error}`);
  return performance.now() - began;
}

type Client = (method: string, path: string, body?: string) => Promise<any>;

/** Node's own client on kept connections: `fetch` costs more than the server's part of some of these requests. */
function createClient({ url, headers }: Cloudyard): Client {
  const agent = new Agent({ keepAlive: true });
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const fields = { ...headers, ...(body && { 'content-type': 'application/json' }) };
      const sent = request(url + path, { agent, method, headers: fields }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
        response.on('end', () => {
          if (response.statusCode === 200) resolve(JSON.parse(text));
          else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`));
        });
      });
      sent.once('error', reject).end(body);
    });
}
