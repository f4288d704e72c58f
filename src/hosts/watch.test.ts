import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createKeyring } from '../platform/encryption.ts';
import { silentLogger } from '../platform/log.ts';
import { eventually, openRegion } from './test-region.ts';
import { startHostWatch } from './watch.ts';

it('a host that does not converge is unhealthy, but not while it starts', async (t) => {
  const region = await openRegion(t);
  await region.startAll('h1');
  await region.publish('a', 1);
  const other = createKeyring([{ id: 'test', key: randomBytes(32) }]);
  const h2 = await region.start('h2', { keys: other });
  await h2.agent.started;
  const { db, leaseSeconds } = region;
  const watch = await startHostWatch({ db, leaseSeconds, regionId: 1, log: silentLogger });
  t.onTestFinished(watch.stop);
  const statusOf = (name: string) => watch.statuses().find(({ kind }) => kind === `host ${name}`);
  expect(statusOf('h2')).toMatchObject({ healthy: true, detail: 'converges' });
  await db.$client.query(`update hosts set started_at = now() - interval '1 hour'`);
  await eventually(() =>
    expect(statusOf('h2')).toMatchObject({
      ...{ healthy: false, detail: 'serves nothing: it cannot converge or serve; its log has the reason' },
      remedy: 'journalctl -u cloudyard-host@1    # on h2',
    }),
  );
  expect(statusOf('h1')).toMatchObject({ healthy: true, detail: 'serves' });
});
