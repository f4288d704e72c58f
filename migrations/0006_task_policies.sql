ALTER TABLE "tasks" ADD COLUMN "lifecycle_policy_id" integer;--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "schedule_id" uuid;--> statement-breakpoint
CREATE INDEX "snapshots_error_deleting" ON "snapshots" USING btree ("region_id") WHERE "snapshots"."status" = 'error_deleting';