/** A change that waits for the lock of its row decides by the tasks that the previous holder wrote. */
import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { createVolumeHost } from '../../test/volume-host.ts';

const cloud = useCloudyard({ volumeDriver: createVolumeHost() });
const shares = '/cloud/v1/file_shares/1/1';
const volumes = '/cloud/v1/volumes/1/1';
const snapshots = '/cloud/v1/snapshots/1/1';

const ids = { file_shares: '', volumes: '', snapshots: '' };

beforeAll(async () => {
  const create = async (kind: keyof typeof ids, path: string, body: object) => {
    const task = await cloud.ended(await cloud.post(path, body));
    ids[kind] = task.body.created_resources[kind][0];
  };
  const network_id = (await cloud.get('/cloud/v1/networks/1/1')).body.results[0].id;
  await create('file_shares', shares, { name: 'a share', protocol: 'NFS', size: 1, network: { network_id } });
  await create('volumes', volumes, { name: 'a volume', source: 'new-volume', size: 1 });
  await create('snapshots', snapshots, { name: 'a snapshot', volume_id: ids.volumes });
});

const waiting = `select from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock' and query ~ '(locked|lock_all)'`;

const name = { name: 'other' };

it.each<[string, { row: keyof typeof ids; task?: keyof typeof ids; send: () => ReturnType<typeof cloud.get> }]>([
  ['update of a share', { row: 'file_shares', send: () => cloud.patch(`${shares}/${ids.file_shares}`, name) }],
  ['deletion of a share', { row: 'file_shares', send: () => cloud.delete(`${shares}/${ids.file_shares}`) }],
  ['update of a volume', { row: 'volumes', send: () => cloud.patch(`${volumes}/${ids.volumes}`, name) }],
  ['deletion of a volume', { row: 'volumes', send: () => cloud.delete(`${volumes}/${ids.volumes}`) }],
  ['snapshot of a volume', { row: 'volumes', send: () => cloud.post(snapshots, { ...name, volume_id: ids.volumes }) }],
  [
    'deletion of a snapshot',
    { row: 'volumes', task: 'snapshots', send: () => cloud.delete(`${snapshots}/${ids.snapshots}`) },
  ],
])('the %s is refused', async (_, { row, task = row, send }) => {
  const taskId = randomUUID();
  const holder = await cloud.db.$client.connect();
  try {
    await holder.query('begin');
    await holder.query(`select from ${row} where id = $1 for update`, [ids[row]]);
    const answer = send();
    await expect.poll(async () => (await cloud.db.$client.query(waiting)).rowCount, { timeout: 10_000 }).toBe(1);
    await holder.query(
      `insert into tasks (id, client_id, user_id, task_type, state, resource, resource_id, generation, created_on, updated_on)
       values ($1, 1, 1, 'of_the_holder', 'RUNNING', 'resource', $2, 1000000, now(), now())`,
      [taskId, ids[task]],
    );
    await holder.query('commit');
    expect(await answer).toMatchObject({ status: 409, body: { message: expect.stringContaining(taskId) } });
  } finally {
    holder.release(true);
    await cloud.db.$client.query('delete from tasks where id = $1', [taskId]);
  }
});
