/** Many schedules of policies with many volumes that are due at the same time. Requests of the API wait for each turn of the event loop. */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../../../test/harness.ts';
import { watchEventLoop } from '../../../../test/security/event-loop-cost.ts';
import { silentLogger } from '../../../platform/log.ts';
import { startDueRuns } from './reconcile.ts';

const cloud = useCloudyard({ driver: null });
const volumes = 1000;
const policies = 4;
const schedulesOfEach = 10;

it('are started without long turns of the event loop', async () => {
  const { db, services } = cloud;
  const volume = { name: 'data', size: 1, source: 'new-volume' };
  expect((await cloud.post('/cloud/v1/volumes/1/1', volume)).status).toBe(200);
  await db.$client.query(
    `insert into volumes
     select (jsonb_populate_record(v, jsonb_build_object('id', gen_random_uuid()))).*
     from volumes v, generate_series(2, ${volumes})`,
  );
  const schedules = Array.from({ length: schedulesOfEach }, () => ({ type: 'interval', hours: 1 }));
  for (let i = 0; i < policies; i += 1) {
    const policy = { action: 'volume_snapshot', name: 'policy', schedules };
    expect((await cloud.post('/cloud/v1/lifecycle_policy/1/1', policy)).status).toBe(200);
  }
  await db.$client.query(
    `insert into lifecycle_policy_volumes (policy_id, volume_id) select p.id, v.id from lifecycle_policies p, volumes v`,
  );
  cloud.clock.advance(3600);
  const deps = { ...services, db, log: silentLogger, notify: services.notifications.issue, regionIds: [1] };
  const end = watchEventLoop({ clean: true });
  const started = await startDueRuns(deps);
  const { blockedMs } = end();
  expect(started).toHaveLength(volumes * policies * schedulesOfEach);
  // The quota counts one volume.
  await db.$client.query(`delete from lifecycle_policy_volumes`);
  await db.$client.query(`delete from volumes where id::text not in (select resource_id from tasks)`);
  expect(blockedMs).toBeLessThan(50);
}, 120_000);
