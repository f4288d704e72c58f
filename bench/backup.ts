/** A backup of a database with 100,000 shares while clients read and create, the same into the same store, and its restore. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Cloudyard, startCloudyard } from './cloudyard.ts';
import { quiet } from './quiet.ts';
import { openServices } from './services.ts';
import { liftQuotas, newShare, scope, seedShares, sharesPath } from './shares.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const shares = 100_000;
const requestsEachMs = 20;

export async function backup(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'start' });
  const { db } = await openServices(workplace, cloudyard);
  await liftQuotas(cloudyard);
  await seedShares(db, cloudyard, scope.projectId, shares);
  const store = join(workplace.dir, 'backups');
  await quiet();
  const load = startRequests(cloudyard, await newShare(cloudyard));
  const first = await run(['backup', '--to', store], cloudyard.environment);
  const again = await run(['backup', '--to', store], cloudyard.environment);
  const times = await load.stop();
  const dataDir = join(workplace.dir, 'restored');
  mkdirSync(dataDir);
  const restored = await run(['restore', '--from', store], { ...cloudyard.environment, CLOUDYARD_DATA_DIR: dataDir });
  const p99 = times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.99)]!;
  return [
    { what: `backup of ${shares} shares under load`, values: [first], unit: 's', bar: { atMost: 20 } },
    { what: 'a second one into the same store', values: [again], unit: 's', bar: { atMost: 20 } },
    { what: `p99 of ${times.length} requests meanwhile`, values: [p99], unit: 'ms', bar: { atMost: 100 } },
    { what: 'its restore, with the verification', values: [restored], unit: 's', bar: { atMost: 60 } },
  ];
}

/** 50 requests a second: nine reads and one create in turn. */
function startRequests(cloudyard: Cloudyard, share: object) {
  const times: number[] = [];
  const open: Promise<void>[] = [];
  let isOver = false;
  const one = async (index: number) => {
    const began = performance.now();
    if (index % 10 === 0) await cloudyard.request('POST', sharesPath, share);
    else await cloudyard.request('GET', `${sharesPath}?limit=20`);
    times.push(performance.now() - began);
  };
  const sending = (async () => {
    for (let i = 0; !isOver; i++) {
      open.push(one(i));
      await sleep(requestsEachMs);
    }
  })();
  return {
    async stop(): Promise<number[]> {
      isOver = true;
      await sending;
      await Promise.all(open);
      return times;
    },
  };
}

/** Returns its seconds. */
async function run(args: string[], env: Record<string, string>): Promise<number> {
  const began = performance.now();
  const child = spawn(process.execPath, ['bin/cloudyard.mjs', ...args], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}`);
  return (performance.now() - began) / 1000;
}
