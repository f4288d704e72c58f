/** Latency of one client while another floods the server over 64 connections, against its latency without the flood. */
import { startCloudyard } from './cloudyard.ts';
import { latencies, type Load, requestsPerSecond } from './load.ts';
import { quiet } from './quiet.ts';
import { quantile, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { liftQuotas, newShare, seedShares, sharesPath } from './shares.ts';
import type { Row } from './table.ts';
import { createTenants } from './tenants.ts';
import type { Workplace } from './workplace.ts';

const connections = 64;
const rounds = 5;
const seconds = 4;
const perSecond = 60;

export async function fairness(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'serve' });
  const services = await openServices(workplace, cloudyard);
  await liftQuotas(cloudyard);
  await seedShares(services.db, cloudyard, 1, 1000);
  const [victim] = await createTenants(services, cloudyard, 1);
  const { path, headers, body } = victim!.create;
  const given = { url: cloudyard.url, headers, connections: 4, seconds, perSecond };
  const turns = [{ path, headers, body }];
  const create = () => latencies({ ...given, method: 'POST', body, turns });
  // The server compiles the rest of its code in the first seconds.
  for (let warmUp = 0; warmUp < 3; warmUp++) await create();
  const list = () => latencies({ ...given, method: 'GET', url: `${cloudyard.url}${path}?limit=10` });

  // Longer than the measured requests, which start a second later.
  const flood = { headers: cloudyard.headers, connections, seconds: seconds + 2 };
  const floods: Record<string, Load> = {
    'lists of 100': { ...flood, method: 'GET', url: `${cloudyard.url}${sharesPath}?limit=100` },
    creates: { ...flood, method: 'POST', url: cloudyard.url + sharesPath, body: await newShare(cloudyard) },
  };
  const rows: Row[] = [];
  for (const [name, load] of Object.entries(floods)) {
    for (const [what, ask] of Object.entries({ list, create })) {
      const [alone, flooded]: [number[], number[]] = [[], []];
      for (let round = 0; round < rounds; round++) {
        await quiet();
        alone.push(quantile(await ask(), 0.99));
        const flooding = requestsPerSecond(workplace, load);
        await new Promise((resolve) => setTimeout(resolve, 1000));
        flooded.push(quantile(await ask(), 0.99));
        await flooding;
      }
      rows.push({
        what: `p99 of ${what} in a flood of ${name} / quiet`,
        values: ratios(flooded, alone),
        measured: `${quantile(flooded, 0.5).toFixed(1)} ms`,
        peer: `${quantile(alone, 0.5).toFixed(1)} ms`,
        unit: 'ratio',
        bar: { atMost: 3 },
      });
    }
  }
  return rows;
}
