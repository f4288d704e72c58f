/** `authorize` with 100,000 keys in memory, against a bare Fastify route. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../src/platform/db.ts';
import { startBareRoute } from './bare-server.ts';
import { type Cloudyard, startCloudyard } from './cloudyard.ts';
import { latencies, requestsPerSecond } from './load.ts';
import { interleave, median, quantile, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { perSecond, type Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const keys = 100_000;
const rounds = 9;
const seconds = 1;
const warmUpSeconds = 3;
const connections = 32;
const latencyRounds = 5;
const latencySeconds = 4;

export async function authorize(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'serve' });
  const services = await openServices(workplace, cloudyard);
  const { secret } = await cloudyard.request('POST', '/cloud/v1/caas/keys/1/1', {
    name: 'bench',
    containers: [{ name: 'web', namespace: 'default' }],
  });
  await seedKeys(services.db);
  await inMemory(cloudyard);

  const url = `${cloudyard.url}/cloudyard/v1/authorize?name=web&namespace=default&project_id=1&region_id=1`;
  const headers = { 'x-api-key': secret as string };
  const bare = await startBareRoute(workplace, '');
  const load = (url: string, seconds: number) => ({ method: 'GET', url, headers, connections, seconds }) as const;
  const side = (url: string, length: number) => requestsPerSecond(workplace, load(url, length));
  for (const target of [url, bare]) await side(target, warmUpSeconds);
  const measured = await interleave(rounds, { cloudyard: () => side(url, seconds), bare: () => side(bare, seconds) });
  const pace = median(measured.cloudyard) / 2;
  const p99 = async (target: string) =>
    quantile(await latencies({ ...load(target, latencySeconds), perSecond: pace }), 0.99);
  const late = await interleave(latencyRounds, { cloudyard: () => p99(url), bare: () => p99(bare) });
  return [
    {
      what: 'authorize, 100,000 keys / bare Fastify route',
      values: ratios(measured.cloudyard, measured.bare),
      measured: perSecond(measured.cloudyard),
      peer: perSecond(measured.bare),
      unit: 'ratio',
      bar: { atLeast: 0.6 },
    },
    {
      what: 'authorize, p99 at half load',
      values: late.cloudyard,
      measured: perSecond([pace]),
      peer: `${median(late.bare).toFixed(0)} ms`,
      unit: 'ms',
      bar: { atMost: 5 },
    },
  ];
}

/** Inserts keys with increasing versions, as if they had been created one by one. */
async function seedKeys(db: Db): Promise<void> {
  await db.$client.query(
    `insert into api_keys (id, project_id, region_id, name, description, containers, is_disabled, key_id, secret_hash,
       created_at, version)
     select gen_random_uuid(), 1, 1, 'seed-' || n, '', jsonb_build_array(jsonb_build_object('name', 'web', 'namespace', 'n' || n)),
       false, lpad(to_hex(n), 16, '0'), sha256(n::text::bytea), now(), 1 + n from generate_series(1, $1::int) n`,
    [keys],
  );
  await db.$client.query(`update revisions set value = 1 + $1 where name = 'api_keys'`, [keys]);
  await db.$client.query('vacuum analyze api_keys');
}

async function inMemory({ url }: Cloudyard): Promise<void> {
  for (;;) {
    const metrics = await fetch(`${url}/metrics`).then((response) => response.text());
    if (Number(/^cloudyard_api_keys (\d+)/m.exec(metrics)?.[1]) > keys) return;
    await sleep(100);
  }
}
