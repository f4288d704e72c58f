import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  customType,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uuid,
} from 'drizzle-orm/pg-core';
import { instant } from '../platform/columns.ts';
import type { DriverStatus } from '../platform/driver-status.ts';

/** What clients poll. A task waits for a generation of one resource; the job that reconciles the resource is separate. */
export const tasks = pgTable(
  'tasks',
  {
    id: uuid('id').primaryKey(),
    clientId: integer('client_id').notNull(),
    projectId: integer('project_id'),
    regionId: integer('region_id'),
    userId: integer('user_id').notNull(),
    taskType: text('task_type').notNull(),
    state: text('state').notNull().$type<TaskState>(),
    resource: text('resource').notNull(),
    resourceId: text('resource_id').notNull(),
    generation: bigint('generation', { mode: 'number' }).notNull(),
    createdResources: jsonb('created_resources').$type<Record<string, (string | number)[]>>(),
    data: jsonb('data').$type<Record<string, unknown>>(),
    error: text('error'),
    requestId: text('request_id'),
    /** The policy and the schedule that requested it; null: a client did. Either may have been deleted since. */
    lifecyclePolicyId: integer('lifecycle_policy_id'),
    scheduleId: uuid('schedule_id'),
    createdOn: instant('created_on').notNull(),
    updatedOn: instant('updated_on').notNull(),
    finishedOn: instant('finished_on'),
    acknowledgedAt: instant('acknowledged_at'),
    acknowledgedBy: integer('acknowledged_by'),
  },
  (t) => [
    index('tasks_client_created').on(t.clientId, t.createdOn, t.id),
    index('tasks_resource').on(t.resourceId, t.createdOn),
    index('tasks_active').on(t.resourceId).where(sql`${t.state} in ('NEW', 'RUNNING')`),
  ],
);

export const taskStates = ['ERROR', 'FINISHED', 'NEW', 'RUNNING'] as const;
export type TaskState = (typeof taskStates)[number];

/** Compared byte by byte, so that keys cost the same whatever the collation of the database is. */
const bytewise = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' });

/**
 * What workers run: at most one job for each resource. The row is the lock: while `locked_by` is set, that worker runs the
 * job, and a request for the same resource sets `again` (jobs.ts).
 */
export const jobs = pgTable(
  'jobs',
  {
    kind: bytewise('kind').notNull(),
    id: bytewise('id').notNull(),
    /** `region:<id>`, whose worker runs it, or `notifications`. */
    queue: bytewise('queue').notNull(),
    clientId: integer('client_id').notNull(),
    /** Lowest first (priority.ts), then the oldest. */
    priority: integer('priority').notNull(),
    runAt: instant('run_at').notNull(),
    attempts: integer('attempts').notNull().default(0),
    /** The worker that runs it, and the fetch that assigned it. */
    lockedBy: bytewise('locked_by'),
    lease: bigint('lease', { mode: 'number' }),
    /** Whether it was requested while it runs. `run_at` and `priority` are then those of the next run. */
    again: boolean('again').notNull().default(false),
  },
  (t) => [
    primaryKey({ columns: [t.id, t.kind] }),
    index('jobs_waiting').on(t.queue, t.priority, t.runAt).where(sql`${t.lockedBy} is null`),
    index('jobs_locked').on(t.lockedBy).where(sql`${t.lockedBy} is not null`),
  ],
);

/** Worker processes and the status of their drivers. */
export const workers = pgTable('workers', {
  id: text('id').primaryKey(),
  host: text('host').notNull(),
  pid: integer('pid').notNull(),
  regionIds: integer('region_ids').array().notNull(),
  drivers: jsonb('drivers').notNull().$type<DriverStatus[]>(),
  startedAt: instant('started_at').notNull(),
  seenAt: instant('seen_at').notNull(),
});

/**
 * SQL: whether a worker lives. One without a heartbeat for this long counts as dead; one of the future died before the clock of
 * PostgreSQL was set back.
 */
export const seenRecently = `seen_at between now() - interval '10 seconds' and now() + interval '10 seconds'`;
