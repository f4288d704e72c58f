/** Statements of the queue read the rows that they concern, also when they were planned while it was empty. */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import { insertJobs, takeTurn } from './jobs.ts';
import { openSession } from './session.ts';

const cloud = useCloudyard({ driver: null, audit: false });
const backlog = 2000;

interface PlanNode {
  'Relation Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  Plans?: PlanNode[];
}

/** The rows of tables that a plan has read, also those that it discarded. */
function rowsRead(node: PlanNode): number {
  const read = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0);
  const own = node['Relation Name'] ? read * node['Actual Loops'] : 0;
  return (node.Plans ?? []).reduce((sum, child) => sum + rowsRead(child), own);
}

it('a turn does not read the backlog', async ({ onTestFinished }) => {
  const session = await openSession(cloud.db.$client, 'a worker', [], () => {});
  onTestFinished(session.close);
  const { $client } = cloud.db;
  const turn = { workerId: 'a worker', ended: [], now: new Date() };
  await $client.query('vacuum analyze jobs');
  await takeTurn(session.db, { ...turn, fetch: null });
  await $client.query(
    insertJobs(`select 'thing', n::text, 'region:2', 1, 0, now() from generate_series(1, ${backlog}) as n order by 2`),
  );
  await $client.query(
    `insert into tasks (id, client_id, user_id, task_type, state, resource, resource_id, generation, created_on, updated_on)
     select gen_random_uuid(), 1, 1, 'create_thing', 'NEW', 'thing', n::text, 1, now(), now()
     from generate_series(1, ${backlog}) as n`,
  );
  const fetch = { queue: 'region:2', limit: 2, skippedClients: [], lease: 1 };
  const { jobs } = await takeTurn(session.db, { ...turn, fetch });
  expect(jobs).toHaveLength(2);

  const [first, second] = jobs.map(({ id }) => id);
  const { rows } = await session.db.$client.query(`explain (analyze, format json) execute jobs_turn (
    'a worker', '{thing,thing}', '{${first},${second}}', '{1,1}', '{null,null}', '{1,1}', 'region:2', '{}', 2, 2, now())`);
  expect(rowsRead(rows[0]['QUERY PLAN'][0].Plan)).toBeLessThan(50);
  const states = await $client.query(`select count(*)::int from tasks where state = 'RUNNING' and resource = 'thing'`);
  expect(states.rows).toEqual([{ count: 4 }]);
});
