/**
 * Every statement of a create, from the request to the end of its task, fails once in every way. The request succeeds or
 * says that the database is unavailable; a repeat with its key creates one share; the task ends; counters match the rows.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { drift, retryNow } from '../../test/crash-harness.ts';
import { type DatabaseFault, databaseFaults, withDatabaseFault } from '../../test/database-faults.ts';
import { useCloudyard } from '../../test/harness.ts';
import { networkOf, shares, truth, valid } from '../../test/worker.ts';

const cloud = useCloudyard();
/** More than the statements of one create, so that statements of the worker's duties fail, too. */
const statements = 30;
/** Statements of this test. */
const isPoll = (text: string) => text.startsWith('with due as') || text.startsWith('select "tasks"."id"');

describe.each(Object.keys(databaseFaults) as DatabaseFault[])('%s', (fault) => {
  it('at any statement loses nothing, doubles nothing and leaves nothing stuck', { timeout: 240_000 }, async () => {
    const network = { network_id: await networkOf(cloud) };
    const failed = new Set<string>();
    for (let i = 0; i < statements; i++) {
      const name = `share-${randomUUID()}`;
      const create = () => cloud.post(shares, { ...valid, name, network }, { headers: { 'idempotency-key': name } });
      const states: string[] = [];
      const isNew = (text: string) => !failed.has(text) && !isPoll(text);
      const statement = await withDatabaseFault(fault, isNew, async () => {
        let answer = await create();
        for (let tries = 0; answer.status !== 200 && tries < 10; tries++) {
          expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': expect.any(String) } });
          answer = await create();
        }
        expect(answer.status).toBe(200);
        await expect
          .poll(
            async () => {
              await retryNow(cloud.db).catch(() => undefined);
              const task = await cloud.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`);
              if (task.status !== 200) expect(task.status).toBe(503);
              states.push(task.body.state);
              return task.body.state;
            },
            { timeout: 30_000, interval: 20 },
          )
          .toBe('FINISHED');
      });
      if (statement) failed.add(statement);
      const { rows } = await cloud.db.$client.query('select status from file_shares where name = $1', [name]);
      expect([statement, rows]).toEqual([statement, [{ status: 'available' }]]);
    }
    const writes = [...failed].filter((text) => /idempotency_c|file_share_observed/.test(text));
    expect(writes).toHaveLength(2);
    expect(await drift(cloud.db, truth)).toEqual([]);
  });
});
