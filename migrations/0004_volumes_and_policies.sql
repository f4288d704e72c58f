CREATE TABLE "development_clock" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"offset_ms" bigint NOT NULL,
	CONSTRAINT "development_clock_is_one" CHECK ("development_clock"."one")
);
--> statement-breakpoint
CREATE TABLE "development_faults" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "development_faults_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"resource" text NOT NULL,
	"operation" text NOT NULL,
	"mode" text NOT NULL,
	"count" integer NOT NULL,
	"remaining" integer NOT NULL,
	"seconds" integer,
	"message" text
);
--> statement-breakpoint
CREATE TABLE "lifecycle_policy_run_volumes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"run_id" uuid NOT NULL,
	"region_id" integer NOT NULL,
	"volume_id" uuid NOT NULL,
	"snapshot_id" uuid,
	"name" text NOT NULL,
	"state" text NOT NULL,
	"message" text,
	"expire_at" timestamp (6) with time zone,
	"expired" jsonb DEFAULT '[]'::jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "lifecycle_policy_runs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"policy_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"schedule_id" uuid NOT NULL,
	"scheduled_at" timestamp (6) with time zone NOT NULL,
	"started_at" timestamp (6) with time zone NOT NULL,
	"done_at" timestamp (6) with time zone
);
--> statement-breakpoint
CREATE TABLE "lifecycle_policies" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "lifecycle_policies_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"client_id" integer NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"action" text NOT NULL,
	"status" text NOT NULL,
	"user_id" integer NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "lifecycle_policy_schedules" (
	"id" uuid PRIMARY KEY NOT NULL,
	"policy_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"position" integer NOT NULL,
	"given" jsonb NOT NULL,
	"retention_seconds" bigint,
	"user_id" integer NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"next_run_at" timestamp (6) with time zone,
	"failing" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "lifecycle_policy_volumes" (
	"policy_id" integer NOT NULL,
	"volume_id" uuid NOT NULL,
	CONSTRAINT "lifecycle_policy_volumes_policy_id_volume_id_pk" PRIMARY KEY("policy_id","volume_id")
);
--> statement-breakpoint
CREATE TABLE "snapshots" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"volume_id" uuid NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"size" bigint NOT NULL,
	"lifecycle_policy_id" integer,
	"schedule_id" uuid,
	"scheduled_at" timestamp (6) with time zone,
	"observed_real" boolean DEFAULT false NOT NULL,
	"tags" jsonb NOT NULL,
	"status" text NOT NULL,
	"creator_task_id" uuid NOT NULL,
	"generation" bigint NOT NULL,
	"observed_generation" bigint NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"updated_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);
--> statement-breakpoint
CREATE TABLE "volumes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"type_name" text NOT NULL,
	"size" bigint NOT NULL,
	"observed_size" bigint,
	"observed_real" boolean DEFAULT false NOT NULL,
	"source_snapshot_id" uuid,
	"revert_to" uuid,
	"tags" jsonb NOT NULL,
	"status" text NOT NULL,
	"creator_task_id" uuid NOT NULL,
	"generation" bigint NOT NULL,
	"observed_generation" bigint NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"updated_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);
--> statement-breakpoint
ALTER TABLE "lifecycle_policy_run_volumes" ADD CONSTRAINT "lifecycle_policy_run_volumes_run_id_lifecycle_policy_runs_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."lifecycle_policy_runs"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lifecycle_policy_runs" ADD CONSTRAINT "lifecycle_policy_runs_policy_id_lifecycle_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lifecycle_policies"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lifecycle_policy_schedules" ADD CONSTRAINT "lifecycle_policy_schedules_policy_id_lifecycle_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lifecycle_policies"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lifecycle_policy_volumes" ADD CONSTRAINT "lifecycle_policy_volumes_policy_id_lifecycle_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lifecycle_policies"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lifecycle_policy_volumes" ADD CONSTRAINT "lifecycle_policy_volumes_volume_id_volumes_id_fk" FOREIGN KEY ("volume_id") REFERENCES "public"."volumes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "snapshots" ADD CONSTRAINT "snapshots_volume_id_volumes_id_fk" FOREIGN KEY ("volume_id") REFERENCES "public"."volumes"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "lifecycle_policy_run_volumes_run" ON "lifecycle_policy_run_volumes" USING btree ("run_id","volume_id");--> statement-breakpoint
CREATE INDEX "lifecycle_policy_run_volumes_snapshot" ON "lifecycle_policy_run_volumes" USING btree ("snapshot_id");--> statement-breakpoint
CREATE INDEX "lifecycle_policy_run_volumes_unsettled" ON "lifecycle_policy_run_volumes" USING btree ("region_id","state") WHERE "lifecycle_policy_run_volumes"."state" in ('pending', 'running');--> statement-breakpoint
CREATE INDEX "lifecycle_policy_run_volumes_expiring" ON "lifecycle_policy_run_volumes" USING btree ("region_id","expire_at") WHERE "lifecycle_policy_run_volumes"."expire_at" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "lifecycle_policy_runs_instant" ON "lifecycle_policy_runs" USING btree ("schedule_id","scheduled_at");--> statement-breakpoint
CREATE INDEX "lifecycle_policy_runs_policy" ON "lifecycle_policy_runs" USING btree ("policy_id","scheduled_at","id");--> statement-breakpoint
CREATE INDEX "lifecycle_policy_runs_open" ON "lifecycle_policy_runs" USING btree ("region_id") WHERE "lifecycle_policy_runs"."done_at" is null;--> statement-breakpoint
CREATE INDEX "lifecycle_policy_runs_done" ON "lifecycle_policy_runs" USING btree ("done_at");--> statement-breakpoint
CREATE INDEX "lifecycle_policies_project" ON "lifecycle_policies" USING btree ("project_id","region_id","id");--> statement-breakpoint
CREATE INDEX "lifecycle_policy_schedules_policy" ON "lifecycle_policy_schedules" USING btree ("policy_id","position");--> statement-breakpoint
CREATE INDEX "lifecycle_policy_schedules_due" ON "lifecycle_policy_schedules" USING btree ("region_id","next_run_at") WHERE "lifecycle_policy_schedules"."next_run_at" is not null;--> statement-breakpoint
CREATE INDEX "lifecycle_policy_volumes_volume" ON "lifecycle_policy_volumes" USING btree ("volume_id");--> statement-breakpoint
CREATE INDEX "snapshots_project" ON "snapshots" USING btree ("project_id","region_id","created_at","id");--> statement-breakpoint
CREATE INDEX "snapshots_client" ON "snapshots" USING btree ("client_id","region_id");--> statement-breakpoint
CREATE INDEX "snapshots_volume" ON "snapshots" USING btree ("volume_id","created_at","id");--> statement-breakpoint
CREATE INDEX "snapshots_policy" ON "snapshots" USING btree ("lifecycle_policy_id");--> statement-breakpoint
CREATE UNIQUE INDEX "snapshots_run" ON "snapshots" USING btree ("schedule_id","volume_id","scheduled_at");--> statement-breakpoint
CREATE INDEX "snapshots_unconverged" ON "snapshots" USING btree ("region_id") WHERE "snapshots"."observed_generation" < "snapshots"."generation";--> statement-breakpoint
CREATE INDEX "volumes_project" ON "volumes" USING btree ("project_id","region_id","created_at","id");--> statement-breakpoint
CREATE INDEX "volumes_client" ON "volumes" USING btree ("client_id","region_id");--> statement-breakpoint
CREATE INDEX "volumes_source_snapshot" ON "volumes" USING btree ("source_snapshot_id");--> statement-breakpoint
CREATE INDEX "volumes_unconverged" ON "volumes" USING btree ("region_id") WHERE "volumes"."observed_generation" < "volumes"."generation";