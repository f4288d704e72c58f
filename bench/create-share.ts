/** Acceptance of creates, against pgbench with the same statements and number of connections. No worker runs. */
import { randomUUID } from 'node:crypto';
import type { Db } from '../src/platform/db.ts';
import { startCloudyard } from './cloudyard.ts';
import { requestsPerSecond } from './load.ts';
import { missingPgbench, transactionsPerSecond } from './pgbench.ts';
import { interleave, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { liftQuotas, scope, shareLoad } from './shares.ts';
import { recordStatements, scriptOf } from './statements.ts';
import { perSecond, type Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const what = 'create share / pgbench transaction';
const rounds = 9;
const seconds = 2;
const warmUpSeconds = 3;
const connections = 16;

export async function createShare(workplace: Workplace): Promise<Row[]> {
  if (missingPgbench) return [{ what, why: missingPgbench }];
  const cloudyard = await startCloudyard(workplace, { command: 'serve' });
  const services = await openServices(workplace, cloudyard);
  await liftQuotas(cloudyard);
  const load = await shareLoad(cloudyard);

  const actor = { tokenId: 1, clientId: 1, role: 'admin', projectIds: null, operator: true } as const;
  const create = () => services.fileShares.create({ actor, requestId: randomUUID() }, scope, load.body);
  // The first create counts the tasks of its client; later creates of the same second do not.
  await create();
  const script = await scriptOf(services.db, await recordStatements(create), await recordStatements(create));

  const accept = (length: number) => requestsPerSecond(workplace, { ...load, connections, seconds: length });
  const transact = () =>
    transactionsPerSecond(workplace, cloudyard.database, script, { clients: connections, seconds });
  await accept(warmUpSeconds);
  const measured = await interleave(rounds, { cloudyard: () => accept(seconds), pgbench: transact });
  await checkCounts(services.db);
  return [
    {
      what,
      values: ratios(measured.cloudyard, measured.pgbench),
      measured: perSecond(measured.cloudyard),
      peer: perSecond(measured.pgbench),
      unit: 'ratio',
      bar: { atLeast: 0.5 },
    },
  ];
}

/** Checks that both sides did the same work. @throws if a counter does not match the rows */
async function checkCounts(db: Db): Promise<void> {
  const { rows } = await db.$client.query<{ shares: number; tasks: number; jobs: number; usage: number; rows: number }>(
    `select (select count(*) from file_shares) as shares, (select count(*) from tasks) as tasks,
            (select count(*) from jobs) as jobs,
            (select usage from quota_counters where kind = 'sfs_count') as usage,
            (select count from row_counts where resource = 'file_share') as rows`,
  );
  const counts = Object.values(rows[0]!);
  if (new Set(counts).size > 1) throw new Error(`the counts differ: ${JSON.stringify(rows[0])}`);
}
