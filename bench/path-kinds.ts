/** From the request to FINISHED for each kind of resource, with 16 clients at a time. Simulated drivers. */
import { type Cloudyard, ended } from './cloudyard.ts';
import { type Client, createClient, finished } from './client.ts';
import { interleave } from './rounds.ts';
import { newShare, sharesPath } from './shares.ts';
import { perSecond, type Row } from './table.ts';

const clients = 16;
const seconds = 2;
const rounds = 3;

/** Returns the path and the body of the next create of a client. */
type NextCreate = (client: number) => { path: string; body: object };

export async function kindsFinished(cloudyard: Cloudyard): Promise<Row[]> {
  const client = createClient(cloudyard);
  const kinds = await createsOf(cloudyard);
  const measured = await interleave(
    rounds,
    Object.fromEntries(Object.entries(kinds).map(([kind, next]) => [kind, () => finishedPerSecond(client, next)])),
  );
  const shares = measured['file shares']!;
  return Object.entries(measured).map(([kind, values]) => ({
    what: `${kind} FINISHED, ${clients} clients that wait / file shares`,
    values: values.map((value, round) => value / shares[round]!),
    measured: perSecond(values),
    peer: perSecond(shares),
    unit: 'ratio',
    bar: { atLeast: 0.4 },
  }));
}

async function finishedPerSecond(client: Client, next: NextCreate): Promise<number> {
  const began = performance.now();
  let count = 0;
  const work = async (index: number) => {
    while (performance.now() - began < seconds * 1000) {
      const { path, body } = next(index);
      await finished(client, 'POST', path, JSON.stringify(body));
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, index) => work(index)));
  return count / ((performance.now() - began) / 1000);
}

async function createsOf(cloudyard: Cloudyard): Promise<Record<string, NextCreate>> {
  const share = await newShare(cloudyard);
  const volume = { name: 'bench', source: 'new-volume', size: 1 };
  const volumes = await many(cloudyard, '/cloud/v1/volumes/1/1', volume, 'volumes');
  const balancers = await many(
    cloudyard,
    '/cloud/v1/loadbalancers/1/1',
    { name: 'bench', flavor: 'lb1-1-2' },
    'loadbalancers',
  );
  const pool = (id: string) => ({
    ...{ name: 'bench', protocol: 'HTTP', lb_algorithm: 'ROUND_ROBIN', load_balancer_id: id },
    members: [{ address: '127.0.0.1', protocol_port: 8080 }],
  });
  return {
    'file shares': () => ({ path: sharesPath, body: share }),
    volumes: () => ({ path: '/cloud/v1/volumes/1/1', body: volume }),
    snapshots: (i) => ({ path: '/cloud/v1/snapshots/1/1', body: { name: 'bench', volume_id: volumes[i]! } }),
    'balancer pools': (i) => ({ path: '/cloud/v1/lbpools/1/1', body: pool(balancers[i]!) }),
  };
}

/** Creates one resource for each client. */
async function many(cloudyard: Cloudyard, path: string, body: object, key: string): Promise<string[]> {
  const create = async () => {
    const task = await ended(cloudyard, await cloudyard.request('POST', path, body));
    return task['created_resources'][key][0] as string;
  };
  return Promise.all(Array.from({ length: clients }, create));
}
