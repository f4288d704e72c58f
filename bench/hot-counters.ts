/** Cost of hot counters: 64 concurrent creates of one client, against creates of 64 clients. No worker runs. */
import { startCloudyard } from './cloudyard.ts';
import { requestsPerSecond, type Turn } from './load.ts';
import { interleave, ratios } from './rounds.ts';
import { openServices } from './services.ts';
import { perSecond, type Row } from './table.ts';
import { createTenants } from './tenants.ts';
import type { Workplace } from './workplace.ts';

const connections = 64;
const rounds = 7;
const seconds = 2;

export async function hotCounters(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'serve' });
  const services = await openServices(workplace, cloudyard);
  const tenants = await createTenants(services, cloudyard, connections);
  const create = (turns: Turn[]) =>
    requestsPerSecond(workplace, { method: 'POST', url: cloudyard.url, headers: {}, connections, seconds, turns });
  const many = tenants.map((tenant) => tenant.create);
  const one = many.map(() => many[0]!);
  await create(many);
  const measured = await interleave(rounds, { one: () => create(one), many: () => create(many) });
  return [
    {
      what: `creates of one client / of ${connections}, ${connections} at a time`,
      values: ratios(measured.one, measured.many),
      measured: perSecond(measured.one),
      peer: perSecond(measured.many),
      unit: 'ratio',
      bar: { atLeast: 0.5 },
    },
  ];
}
