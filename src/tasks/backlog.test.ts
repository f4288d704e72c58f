/** The server when the job queue is full, and what /metrics shows of the queue. */
import { inject, it } from 'vitest';
import { type Cloudyard, openCloudyard } from '../../test/harness.ts';
import { available, create, idOf, shares, soon } from '../../test/worker.ts';
import { insertJobs } from './jobs.ts';

const metric = async (cloud: Cloudyard, name: string) => {
  const text = (await cloud.get('/metrics', { token: null })).body as string;
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1],
  );
};

it('a full queue refuses creates of all clients until it is shorter; reads and deletes go on', async (t) => {
  const { expect } = t;
  const { cloudyard: cloud, stop } = await openCloudyard(inject('postgres'), { driver: null, maxBacklog: 5 });
  t.onTestFinished(stop);
  await cloud.startWorker();
  const old = await available(t, cloud);
  await cloud.db.$client.query(
    insertJobs(`select 'thing', n::text, 'region:2', 1, 0, now() from generate_series(1, 10) as n order by 2`),
  );
  const status = async () => (await create(cloud)).status;
  await expect.poll(status, soon).toBe(503);
  const other = await cloud.newClient();
  const network = (await cloud.get(`/cloud/v1/networks/${other.projectId}/1`, other)).body.results[0].id;
  const body = { name: 'a share', protocol: 'NFS', size: 1, network: { network_id: network } };
  const refused = await cloud.post(`/cloud/v1/file_shares/${other.projectId}/1`, body, other);
  expect(refused).toMatchObject({
    status: 503,
    headers: { 'retry-after': '5' },
    body: {
      exception_class: 'Unavailable',
      message: '5 jobs wait for a worker, the limit; try again in 5 seconds',
    },
  });
  expect((await cloud.get(`/cloud/v1/file_shares/${other.projectId}/1`, other)).body.count).toBe(0);
  expect((await cloud.get(`${shares}/${old}`)).status).toBe(200);
  expect((await cloud.ended(await cloud.delete(`${shares}/${old}`))).body.state).toBe('FINISHED');
  expect(await metric(cloud, 'cloudyard_client_refusals_total{limit="backlog"}')).toBeGreaterThan(0);
  await cloud.db.$client.query(`delete from jobs where kind = 'thing'`);
  await expect.poll(status, soon).toBe(200);
}, 60_000);

it('the metrics show waiting jobs, the age of the oldest one, and the jobs that have ended', async (t) => {
  const { expect } = t;
  const { cloudyard: cloud, stop } = await openCloudyard(inject('postgres'), { driver: null });
  t.onTestFinished(stop);
  expect(await metric(cloud, 'cloudyard_queue_oldest_job_seconds')).toBe(0);
  const answers = [await create(cloud), await create(cloud)];
  await cloud.db.$client.query(`update jobs set run_at = now() - interval '1 hour' where id = $1`, [
    await idOf(cloud, answers[0]!),
  ]);
  expect(await metric(cloud, 'cloudyard_queue_jobs{state="ready"}')).toBe(2);
  expect(await metric(cloud, 'cloudyard_queue_oldest_job_seconds')).toBeGreaterThanOrEqual(3600);
  await cloud.startWorker();
  for (const answer of answers) expect((await cloud.ended(answer)).body.state).toBe('FINISHED');
  const ended = () => metric(cloud, 'cloudyard_jobs_ended_total{outcome="done"}');
  await expect.poll(ended, soon).toBe(2);
  await expect.poll(() => metric(cloud, 'cloudyard_queue_jobs{state="ready"}'), soon).toBe(0);
  expect(await metric(cloud, 'cloudyard_queue_oldest_job_seconds')).toBe(0);
});
