/** HTTP through a listener of Cloudyard, against the same HAProxy with a handwritten configuration. */
import { createBalancer, startBalancing } from './balancers.ts';
import { requestsPerSecond } from './load.ts';
import { missingHaproxy, startHandwritten, startMembers } from './proxies.ts';
import { interleave, ratios } from './rounds.ts';
import { perSecond, type Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const what = 'HTTP through a listener / handwritten HAProxy';
const rounds = 9;
const seconds = 2;
const warmUpSeconds = 2;
const connections = 32;

export async function balanceHttp(workplace: Workplace): Promise<Row[]> {
  if (missingHaproxy) return [{ what, why: missingHaproxy }];
  const cloudyard = await startBalancing(workplace, 'start');
  const member = await startMembers(workplace);
  const members = [member(0), member(1)];
  const { url } = await createBalancer(cloudyard, [members]);
  const byHand = await startHandwritten(workplace, members);
  const through = (at: string, length = seconds) =>
    requestsPerSecond(workplace, { method: 'GET', url: at, headers: {}, connections, seconds: length });
  for (const at of [url, byHand]) await through(at, warmUpSeconds);
  const measured = await interleave(rounds, { cloudyard: () => through(url), byHand: () => through(byHand) });
  return [
    {
      what,
      values: ratios(measured.cloudyard, measured.byHand),
      measured: perSecond(measured.cloudyard),
      peer: perSecond(measured.byHand),
      unit: 'ratio',
      bar: { atLeast: 0.95 },
    },
  ];
}
