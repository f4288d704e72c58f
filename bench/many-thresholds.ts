/** Cost of a create among 10,000 clients with thresholds and counters, against a single client. No worker runs. */
import { startCloudyard } from './cloudyard.ts';
import { requestsPerSecond } from './load.ts';
import { interleave, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { perSecond, type Row } from './table.ts';
import { createTenants } from './tenants.ts';
import type { Workplace } from './workplace.ts';

const clients = 10_000;
const connections = 16;
const rounds = 7;
const seconds = 2;

export async function manyThresholds(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'serve' });
  const services = await openServices(workplace, cloudyard);
  const [tenant] = await createTenants(services, cloudyard, 1);
  const { db } = services;
  const turns = [tenant!.create];
  const create = () =>
    requestsPerSecond(workplace, { method: 'POST', url: cloudyard.url, headers: {}, connections, seconds, turns });
  const among = async (count: number) => {
    await db.$client.query('delete from quota_thresholds');
    await db.$client.query('delete from quota_counters where client_id > 1000000');
    await db.$client.query(seedThresholds, [count]);
    await db.$client.query(seedCounters, [count]);
    await db.$client.query('vacuum analyze quota_thresholds');
    await db.$client.query('vacuum analyze quota_counters');
    await create();
    return create();
  };
  await create();
  const measured = await interleave(rounds, { many: () => among(clients), alone: () => among(0) });
  return [
    {
      what: `cost of a create among ${clients} clients with thresholds`,
      // Cost is the inverse of a rate.
      values: ratios(measured.alone, measured.many),
      measured: perSecond(measured.many),
      peer: perSecond(measured.alone),
      unit: 'ratio',
      bar: { atMost: 1.1 },
    },
  ];
}

const seedThresholds = `insert into quota_thresholds (client_id, threshold)
  select 1000000 + n, 50 from generate_series(1, $1::int) n
  union all select client_id, 80 from quota_counters where region_id = 1 group by 1`;

const seedCounters = `insert into quota_counters (client_id, region_id, kind, usage)
  select 1000000 + n, 1, kind, 5 from generate_series(1, $1::int) n,
    unnest(array['sfs_count', 'sfs_size', 'network_count', 'subnet_count']) kind`;
