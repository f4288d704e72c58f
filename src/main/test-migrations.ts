/** Helpers for the tests of migrations. */
import { inject, onTestFinished } from 'vitest';
import { inDatabase } from '../../test/postgres.ts';
import type { ConnectionOptions } from '../platform/db.ts';
import { withClient } from '../platform/with-client.ts';

const name = `migrations_${process.pid}`;

export function queryOnce(connection: ConnectionOptions, text: string): Promise<unknown[]> {
  return withClient(connection, async (client) => (await client.query(text)).rows);
}

/** Dropped after the test. */
export async function emptyDatabase(): Promise<ConnectionOptions> {
  const connection = inject('postgres');
  await queryOnce(connection, `create database ${name}`);
  onTestFinished(async () => void (await queryOnce(connection, `drop database if exists ${name} with (force)`)));
  return inDatabase(connection, name);
}

export const deliveryId = '11111111-1111-4111-8111-111111111111';

/**
 * The columns of graphile-worker 0.17.3 that the migration reads. Among the jobs: one that is locked, one that was replaced
 * while it ran (it has no key), one in backoff, and one whose delivery is gone.
 */
export const jobsOfRelease = `
  create schema drizzle;
  create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint);
  insert into drizzle.__drizzle_migrations (hash, created_at) values ('x', 1795346463961);
  create schema graphile_worker;
  create table graphile_worker._private_tasks (id int primary key, identifier text not null);
  create table graphile_worker._private_jobs (id bigint generated always as identity primary key, task_id int not null,
    payload json not null, priority smallint not null default 0, run_at timestamptz not null default now(),
    attempts smallint not null default 0, key text, locked_at timestamptz, locked_by text, flags jsonb);
  insert into graphile_worker._private_tasks values (1, 'reconcile:1'), (2, 'reconcile:2'), (3, 'deliver'), (4, 'quota_alert');
  insert into notifications (id, client_id, type, subject, body, data, created_at)
    values ('${deliveryId}', 7, 'quota', 'x', '{}', '{}', now());
  insert into notification_deliveries (id, notification_id, channel, target, state, attempts, attempt_count, failures, give_up_at)
    values ('${deliveryId}', '${deliveryId}', 'email', 'a@example.com', 'pending', '[]', 0, 0, now());
  insert into graphile_worker._private_jobs (task_id, payload, priority, key, flags, locked_by, locked_at, attempts, run_at) values
    (1, '{"resource": "file_share", "id": "a"}', 3, 'file_share:a', '{"client:7": true}', 'worker-x', now(), 1, now()),
    (1, '{"resource": "file_share", "id": "a"}', 3, null, '{"client:7": true}', 'worker-x', now(), 25, now()),
    (2, '{"resource": "file_share", "id": "b"}', 30000, 'file_share:b', null, null, null, 3, now() + interval '6 hours'),
    (3, '{"id": "${deliveryId}"}', 0, 'deliver:${deliveryId}', null, null, null, 0, now() + interval '1 hour'),
    (3, '{"id": "22222222-2222-4222-8222-222222222222"}', 0, 'deliver:22222222', null, null, null, 0, now()),
    (4, '{"client_id": 7}', 0, 'quota_alert:7', null, null, null, 0, now() + interval '1 minute')`;
