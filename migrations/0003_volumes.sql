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
ALTER TABLE "snapshots" ADD CONSTRAINT "snapshots_volume_id_volumes_id_fk" FOREIGN KEY ("volume_id") REFERENCES "public"."volumes"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
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