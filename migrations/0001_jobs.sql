CREATE TABLE "jobs" (
	"kind" text COLLATE "C" NOT NULL,
	"id" text COLLATE "C" NOT NULL,
	"queue" text COLLATE "C" NOT NULL,
	"client_id" integer NOT NULL,
	"priority" integer NOT NULL,
	"run_at" timestamp (6) with time zone NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"locked_by" text COLLATE "C",
	"lease" bigint,
	"again" boolean DEFAULT false NOT NULL,
	CONSTRAINT "jobs_id_kind_pk" PRIMARY KEY("id","kind")
);
--> statement-breakpoint
CREATE INDEX "jobs_waiting" ON "jobs" USING btree ("queue","priority","run_at") WHERE "jobs"."locked_by" is null;--> statement-breakpoint
CREATE INDEX "jobs_locked" ON "jobs" USING btree ("locked_by") WHERE "jobs"."locked_by" is not null;--> statement-breakpoint
CREATE FUNCTION cloudyard_virtual_time(in_queue text, upto integer) RETURNS integer LANGUAGE plpgsql STABLE
	SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
begin
	-- The settings keep a plan that was made for an empty queue from reading a backlog.
	return coalesce((select priority from jobs
		where queue = in_queue and locked_by is null and run_at <= now() and priority <= upto
		order by priority, run_at limit 1), 0);
end $$;
--> statement-breakpoint
DO $$
begin
	-- Version 0.2.0 kept its jobs in the schema of graphile-worker.
	if to_regclass('graphile_worker._private_jobs') is null then return; end if;
	lock table graphile_worker._private_jobs;
	insert into jobs (kind, id, queue, client_id, priority, run_at)
	select distinct on (payload ->> 'resource', payload ->> 'id')
		payload ->> 'resource', payload ->> 'id', replace(t.identifier, 'reconcile:', 'region:'),
		coalesce((select substr(flag, 8)::int from jsonb_object_keys(flags) as flag limit 1), 0), priority, least(run_at, now())
	from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
	where t.identifier like 'reconcile:%' and payload ->> 'resource' is not null and payload ->> 'id' is not null;
	insert into jobs (kind, id, queue, client_id, priority, run_at)
	select distinct on (d.id) 'deliver', d.id::text, 'notifications', n.client_id, 0, j.run_at
	from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
		join notification_deliveries d on d.id::text = payload ->> 'id' join notifications n on n.id = d.notification_id
	where t.identifier = 'deliver' order by d.id, j.run_at;
	insert into jobs (kind, id, queue, client_id, priority, run_at)
	select distinct on (payload ->> 'client_id') 'quota_alert', payload ->> 'client_id', 'notifications', (payload ->> 'client_id')::int, 0, j.run_at
	from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
	where t.identifier = 'quota_alert' order by payload ->> 'client_id', j.run_at;
	drop schema graphile_worker cascade;
end $$;
