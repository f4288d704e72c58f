/** Time from the update of a pool's members to the response that the task is FINISHED, with HAProxy. */
import { createBalancer, startBalancing, updateMembers } from './balancers.ts';
import { createClient } from './client.ts';
import { missingHaproxy, startMembers } from './proxies.ts';
import { quiet } from './quiet.ts';
import { median } from './rounds.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const what = 'update pool to FINISHED with HAProxy, p50';
const rounds = 3;
const updates = 50;

export async function updatePool(workplace: Workplace): Promise<Row[]> {
  if (missingHaproxy) return [{ what, why: missingHaproxy }];
  const cloudyard = await startBalancing(workplace, 'start');
  const member = await startMembers(workplace);
  const { pools } = await createBalancer(cloudyard, [[member(0)]]);
  const client = createClient(cloudyard);
  let version = 0;
  // One member stays, one is added, one is removed.
  const update = () => updateMembers(client, pools[0]!, [member(0), member(++version)]);
  const round = async () => {
    const latencies: number[] = [];
    for (let i = 0; i < updates; i++) latencies.push(await update());
    return median(latencies);
  };
  await round();
  const values: number[] = [];
  for (let i = 0; i < rounds; i++) {
    await quiet();
    values.push(await round());
  }
  return [{ what, values, unit: 'ms', bar: { atMost: 100 } }];
}
