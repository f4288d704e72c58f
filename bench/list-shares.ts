/** A page of 20 of a million shares, against a page of 20 of a thousand shares in another project. */
import { startCloudyard } from './cloudyard.ts';
import { requestsPerSecond } from './load.ts';
import { interleave, median } from './rounds.ts';
import { openServices } from './services.ts';
import { scope, seedShares } from './shares.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const few = 1000;
const many = 1_000_000;
const rounds = 7;
const seconds = 1;
const warmUpSeconds = 3;

export async function listShares(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'serve' });
  const { db } = await openServices(workplace, cloudyard);
  const other = await cloudyard.request('POST', '/cloud/v1/projects', { name: 'a million' });
  await seedShares(db, cloudyard, scope.projectId, few);
  await seedShares(db, cloudyard, other.id, many);

  const { headers } = cloudyard;
  // Sequential, to measure the latency of a page.
  const millisecondsOf = async (projectId: number, length: number) => {
    const url = `${cloudyard.url}/cloud/v1/file_shares/${projectId}/1?limit=20`;
    const load = { method: 'GET', url, headers, connections: 1, seconds: length } as const;
    return 1000 / (await requestsPerSecond(workplace, load));
  };
  for (const id of [scope.projectId, other.id]) await millisecondsOf(id, warmUpSeconds);
  const measured = await interleave(rounds, {
    few: () => millisecondsOf(scope.projectId, seconds),
    many: () => millisecondsOf(other.id, seconds),
  });
  return [
    {
      what: 'list 20 of 1,000,000 / 20 of 1,000',
      values: measured.many.map((time, round) => time / measured.few[round]!),
      measured: `${median(measured.many).toFixed(2)} ms`,
      peer: `${median(measured.few).toFixed(2)} ms`,
      unit: 'ratio',
      bar: { atMost: 1.3 },
    },
  ];
}
