/**
 * `npm run bench [name…]` runs benchmarks and prints one table. It is not a test: a missed bar is printed and does not fail
 * the run.
 */
import { alertDelivery } from './alert-delivery.ts';
import { authorize } from './authorize.ts';
import { backup } from './backup.ts';
import { balanceHttp } from './balance-http.ts';
import { clientCommands } from './client-commands.ts';
import { changePolicies } from './change-policies.ts';
import { consoleInBrowser } from './console.ts';
import { createShare } from './create-share.ts';
import { events } from './events.ts';
import { fairness } from './fairness.ts';
import { finishShare } from './finish-share.ts';
import { fullRegion } from './full-region.ts';
import { getShare } from './get-share.ts';
import { severalHosts } from './hosts.ts';
import { hotCounters } from './hot-counters.ts';
import { installPackage } from './install-package.ts';
import { listShares } from './list-shares.ts';
import { kindStatements } from './kind-statements.ts';
import { path } from './path.ts';
import { disturbance } from './quiet.ts';
import { manyThresholds } from './many-thresholds.ts';
import { moreProcesses } from './more-processes.ts';
import { pushAndPull } from './push-and-pull.ts';
import { reads } from './reads.ts';
import { runPolicies } from './run-policies.ts';
import { silence } from './silence.ts';
import { sinceFirst } from './since-first.ts';
import { startServer } from './start-server.ts';
import { type Row, tableOf } from './table.ts';
import { updatePool } from './update-pool.ts';
import { week } from './week.ts';
import { createWorkplace, type Workplace } from './workplace.ts';

/** A benchmark. It starts processes in the workplace, which stops them. */
type Bench = (workplace: Workplace) => Promise<Row[]>;

const benches: Record<string, Bench> = {
  get: getShare,
  processes: moreProcesses,
  reads,
  path,
  create: createShare,
  finish: finishShare,
  list: listShares,
  counters: hotCounters,
  fairness,
  thresholds: manyThresholds,
  alerts: alertDelivery,
  events,
  console: consoleInBrowser,
  authorize,
  start: startServer,
  balance: balanceHttp,
  pool: updatePool,
  region: fullRegion,
  hosts: severalHosts,
  l7: changePolicies,
  images: pushAndPull,
  policies: runPolicies,
  silence,
  commands: clientCommands,
  backup,
  week,
};

/** Run only if they are named: they take long, or need a network. */
const onRequest: Record<string, Bench> = {
  statements: kindStatements,
  'since-first': sinceFirst,
  package: installPackage,
};

const all = { ...benches, ...onRequest };
const requested = process.argv.slice(2);
const unknown = requested.filter((name) => !Object.hasOwn(all, name));
if (unknown.length > 0) {
  process.stderr.write(`unknown benchmark ${unknown.join(', ')}; use one of: ${Object.keys(all).join(', ')}\n`);
  process.exit(2);
}

const rows: Row[] = [];
for (const name of requested.length > 0 ? requested : Object.keys(benches)) rows.push(...(await run(name)));
process.stdout.write(`\n${tableOf(rows)}\n${disturbance() ?? ''}\n`);
process.exit(0);

/** Runs a benchmark. A failure becomes a row, and the others still run. */
async function run(name: string): Promise<Row[]> {
  const began = performance.now();
  process.stderr.write(`${name} …`);
  const workplace = createWorkplace();
  try {
    return await all[name]!(workplace);
  } catch (error) {
    process.stderr.write(`\n${(error as Error).stack}\n`);
    return [{ what: name, why: `failed: ${(error as Error).message.split('\n')[0]}` }];
  } finally {
    await workplace.clear();
    process.stderr.write(` ${Math.round((performance.now() - began) / 1000)} s\n`);
  }
}
