/** GET of one share, against a bare Fastify route and against pgbench. */
import { startBareRoute } from './bare-server.ts';
import { type Cloudyard, startCloudyard } from './cloudyard.ts';
import { requestsPerSecond } from './load.ts';
import { missingPgbench, transactionsPerSecond } from './pgbench.ts';
import { interleave, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { scope, seedShares, sharesPath } from './shares.ts';
import { recordStatements, type Script, scriptOf } from './statements.ts';
import { perSecond, type Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const rounds = 9;
const seconds = 1;
const warmUpSeconds = 3;
const connections = 32;
/** The size of the server's pool. */
const clients = 8;

export async function getShare(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'serve' });
  const services = await openServices(workplace, cloudyard);
  await seedShares(services.db, cloudyard, 1, 1000);
  const { results } = await cloudyard.request('GET', `${sharesPath}?limit=1&offset=500`);
  const { id } = results[0];

  const share = `${cloudyard.url}${sharesPath}/${id}`;
  const bytes = await fetch(share, { headers: cloudyard.headers }).then((response) => response.text());
  const bare = await startBareRoute(workplace, bytes);
  const read = () => recordStatements(() => services.fileShares.get(scope, id));
  const script = await scriptOf(services.db, await read(), await read());

  const { headers } = cloudyard;
  const load = { method: 'GET', headers, connections } as const;
  const side = (url: string, length: number) => requestsPerSecond(workplace, { ...load, url, seconds: length });
  const select = (length: number) => selectsPerSecond(workplace, cloudyard, script, length);
  for (const url of [share, bare]) await side(url, warmUpSeconds);
  const measured = await interleave(rounds, {
    cloudyard: () => side(share, seconds),
    bare: () => side(bare, seconds),
    pgbench: () => select(seconds),
  });
  return [
    {
      what: 'get share / bare Fastify route',
      values: ratios(measured.cloudyard, measured.bare),
      measured: perSecond(measured.cloudyard),
      peer: perSecond(measured.bare),
      unit: 'ratio',
      bar: { atLeast: 0.35 },
    },
    againstPgbench(measured.cloudyard, measured.pgbench),
  ];
}

function againstPgbench(cloudyard: number[], pgbench: number[]): Row {
  const what = 'get share / pgbench select';
  if (missingPgbench) return { what, why: missingPgbench };
  return {
    what,
    values: ratios(cloudyard, pgbench),
    measured: perSecond(cloudyard),
    peer: perSecond(pgbench),
    unit: 'ratio',
    bar: { atLeast: 0.2 },
  };
}

async function selectsPerSecond(workplace: Workplace, { database }: Cloudyard, script: Script, length: number) {
  return missingPgbench ? NaN : transactionsPerSecond(workplace, database, script, { clients, seconds: length });
}
