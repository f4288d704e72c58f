/** The statements of a create, an update and a delete of each kind of resource, up to the end of its task, at rest. */
import type { Db } from '../src/platform/db.ts';
import { aCertificate } from '../src/resources/secrets/test-certificates.ts';
import { balancersPath, listenersPath, poolsPath } from './balancers.ts';
import { type Client, createClient } from './client.ts';
import { type Cloudyard, startCloudyard } from './cloudyard.ts';
import { untilIdle } from './path.ts';
import { sum, withStatementLog } from './path-statements.ts';
import { openServices } from './services.ts';
import { liftQuotas, newShare, sharesPath } from './shares.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

/** So many that the statements of a scan for lost jobs, one for each kind every 10 s, stay below half for each. */
const times = 16;
const policiesPath = '/cloud/v1/lifecycle_policy/1/1';
const snapshotsPath = '/cloud/v1/snapshots/1/1';
const volumesPath = '/cloud/v1/volumes/1/1';
const bars = { create: 8, update: 8, delete: 8 };

interface Kind {
  /** The body of create number `i`. */
  body: (i: number) => object;
  path: string;
  createPath?: string;
  /** The key in `created_resources`; absent for a kind whose create responds with its row. */
  key?: string;
  /** Absent: the kind has no update. */
  update?: { path?: string; body: object };
}

export async function kindStatements(workplace: Workplace): Promise<Row[]> {
  const cloudyard = await startCloudyard(workplace, { command: 'start' });
  await liftQuotas(cloudyard);
  const { db } = await openServices(workplace, cloudyard);
  const client = createClient(cloudyard);
  const kinds = Object.entries(await kindsOf(cloudyard, client, db));
  return withStatementLog(workplace, db, async (count) => {
    const rows: Row[] = [];
    for (const [kind, { path, createPath = path, body, key, update }] of kinds) {
      const ids: string[] = [];
      const measure = async (action: keyof typeof bars, request: (i: number) => Promise<unknown>) => {
        let i = 0;
        const counts = await count(() => request(i++), times);
        process.stderr.write(`\n${action} of a ${kind}`);
        for (const [text, each] of counts) process.stderr.write(`\n  ${each.toFixed(2)}  ${text.slice(0, 110)}`);
        const what = `statements to ${action} a ${kind}`;
        // Polls add a fraction; a change executes each statement a whole number of times.
        const whole = new Map([...counts].map(([text, each]) => [text, Math.round(each)]));
        rows.push({ what, values: [sum(whole)], unit: 'statements', bar: { atMost: bars[action] } });
      };
      const answers: { id?: string; tasks?: string[] }[] = [];
      await measure('create', async (i) => answers.push(await client('POST', createPath, JSON.stringify(body(i)))));
      for (const answer of answers) ids.push(key ? await createdId(db, answer.tasks![0]!, key) : String(answer.id));
      if (update) {
        const changes = JSON.stringify(update.body);
        await measure('update', (i) => client('PATCH', `${update.path ?? path}/${ids[i]}`, changes));
      }
      await untilIdle(db);
      await measure('delete', (i) => client('DELETE', `${path}/${ids[i]}`));
      await untilIdle(db);
    }
    return rows;
  });
}

async function kindsOf(cloudyard: Cloudyard, client: Client, db: Db): Promise<Record<string, Kind>> {
  const create = async (path: string, body: object, key: string) =>
    createdId(db, (await client('POST', path, JSON.stringify(body))).tasks[0], key);
  const share = await newShare(cloudyard);
  const volume = { name: 'bench', source: 'new-volume', size: 1 };
  const volumeId = await create(volumesPath, volume, 'volumes');
  const balancer = { name: 'bench', flavor: 'lb1-1-2' };
  const balancers: string[] = [];
  for (let i = 0; i < times; i++) balancers.push(await create(balancersPath, balancer, 'loadbalancers'));
  const part = (i: number) => ({ name: 'bench', protocol: 'HTTP', load_balancer_id: balancers[i] });
  const { pem, keyPem } = aCertificate();
  const payload = { certificate: pem, certificate_chain: pem, private_key: keyPem };
  const schedules = [{ type: 'interval', hours: 1, max_quantity: 1 }];
  const members = [{ address: '127.0.0.1', protocol_port: 8080 }];
  return {
    'file share': { path: sharesPath, body: () => share, key: 'file_shares', update: { body: { name: 'other' } } },
    volume: { path: volumesPath, body: () => volume, key: 'volumes', update: { body: { name: 'other' } } },
    snapshot: {
      ...{ path: snapshotsPath, key: 'snapshots', update: { body: { name: 'other' } } },
      body: () => ({ name: 'bench', volume_id: volumeId }),
    },
    'load balancer': {
      ...{ path: balancersPath, key: 'loadbalancers', update: { body: { name: 'other' } } },
      body: () => balancer,
    },
    listener: {
      ...{ path: listenersPath, key: 'listeners' },
      body: (i) => ({ ...part(i), protocol_port: 80 }),
      update: { path: listenersPath.replace('/v1/', '/v2/'), body: { name: 'other' } },
    },
    'balancer pool': {
      ...{ path: poolsPath, key: 'pools' },
      body: (i) => ({ ...part(i), lb_algorithm: 'ROUND_ROBIN', members }),
      update: {
        path: poolsPath.replace('/v1/', '/v2/'),
        body: { members: [...members, { ...members[0], weight: 2, protocol_port: 8081 }] },
      },
    },
    secret: {
      ...{ path: '/cloud/v1/secrets/1/1', createPath: '/cloud/v2/secrets/1/1', key: 'secrets' },
      body: () => ({ name: 'bench', payload }),
    },
    'lifecycle policy': {
      path: policiesPath,
      body: () => ({ action: 'volume_snapshot', name: 'bench', schedules, volume_ids: [volumeId] }),
      update: { body: { name: 'other' } },
    },
  };
}

/** The id that a task has created, once no task is active. */
async function createdId(db: Db, taskId: string, key: string): Promise<string> {
  await untilIdle(db);
  const { rows } = await db.$client.query('select created_resources from tasks where id = $1', [taskId]);
  return rows[0].created_resources[key][0];
}
