/**
 * Shares FINISHED a second, against the commit before the job queue was reworked, in the same run. It checks that commit out
 * into a temporary folder and installs its dependencies, so it needs the history of Git and the package registry, and only
 * runs when it is named.
 */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connect } from '../src/platform/db.ts';
import { silentLogger } from '../src/platform/log.ts';
import { root } from '../src/platform/program-files.ts';
import { startCloudyard, withSettings } from './cloudyard.ts';
import { finishedPerSecond } from './path.ts';
import { interleave, ratios } from './rounds.ts';
import { liftQuotas } from './shares.ts';
import { perSecond, type Row } from './table.ts';
import { createWorkplace, type Workplace } from './workplace.ts';

const execute = promisify(execFile);
const firstCommit = 'fd1af6c9ade71ea5ac23ef1158641c07fe3534f6';
const connections = 16;
const rounds = 5;

export async function sinceFirst(workplace: Workplace): Promise<Row[]> {
  const what = `shares FINISHED, ${connections} connections / commit ${firstCommit.slice(0, 7)}`;
  const hasCommit = await git('cat-file', '-e', `${firstCommit}^{commit}`).then(
    () => true,
    () => false,
  );
  if (!hasCommit) return [{ what, why: 'skipped: the commit is not in this checkout; fetch its whole history' }];
  const checkout = await checkOut(workplace);
  const first = await aServer(workplace, checkout);
  const now = await aServer(workplace);
  for (const side of [first, now]) await side();
  const measured = await interleave(rounds, { now, first });
  return [
    {
      what,
      values: ratios(measured.now, measured.first),
      measured: perSecond(measured.now),
      peer: perSecond(measured.first),
      unit: 'ratio',
      bar: { atLeast: 3.5 },
    },
  ];
}

const git = (...args: string[]) => execute('git', args, { cwd: root });

/** Returns the folder of the first commit, with its dependencies. */
async function checkOut({ dir }: Workplace): Promise<string> {
  const checkout = join(dir, 'first');
  const archive = join(dir, 'first.tar');
  mkdirSync(checkout);
  await git('archive', '--output', archive, firstCommit);
  await execute('tar', ['-xf', archive, '-C', checkout]);
  await execute('npm', ['ci', '--prefer-offline'], { cwd: checkout, env: withSettings({}), maxBuffer: 2 ** 24 });
  return checkout;
}

/** Returns a measurement of a server of its own. */
async function aServer(workplace: Workplace, checkout?: string): Promise<() => Promise<number>> {
  const own = createWorkplace();
  workplace.closing(own.clear);
  const cloudyard = await startCloudyard(own, { command: 'start', ...(checkout !== undefined && { checkout }) });
  // The first commit refuses kinds that it does not know.
  await liftQuotas(cloudyard, ['sfs_count', 'sfs_size']);
  // Not the services of this checkout: they belong to its own schema.
  const db = connect({ ...cloudyard.database, name: 'bench', poolSize: 2, log: silentLogger });
  own.closing(() => db.$client.end());
  const finish = await finishedPerSecond(own, cloudyard, db);
  return () => finish(connections);
}
