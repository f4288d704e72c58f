CREATE TABLE "quota_crossings" (
	"client_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"kind" text NOT NULL,
	"usage" bigint NOT NULL,
	"limit" bigint NOT NULL,
	CONSTRAINT "quota_crossings_client_id_region_id_kind_pk" PRIMARY KEY("client_id","region_id","kind")
);
--> statement-breakpoint
CREATE TABLE "quota_thresholds" (
	"client_id" integer PRIMARY KEY NOT NULL,
	"threshold" integer,
	"last_message" json,
	"last_sending" timestamp (6) with time zone
);
--> statement-breakpoint
CREATE TABLE "notification_deliveries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"notification_id" uuid NOT NULL,
	"channel" text NOT NULL,
	"target" text NOT NULL,
	"webhook_id" uuid,
	"state" text NOT NULL,
	"attempts" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"attempt_count" integer DEFAULT 0 NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"next_attempt_at" timestamp (6) with time zone,
	"give_up_at" timestamp (6) with time zone NOT NULL,
	"ended_at" timestamp (6) with time zone
);
--> statement-breakpoint
CREATE TABLE "notifications" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"type" text NOT NULL,
	"subject" text NOT NULL,
	"body" json NOT NULL,
	"data" json NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "registry_artifacts" (
	"id" serial PRIMARY KEY NOT NULL,
	"repository_id" integer NOT NULL,
	"digest" text NOT NULL,
	"size" bigint NOT NULL,
	"pushed_at" timestamp (6) with time zone NOT NULL,
	"pulled_at" timestamp (6) with time zone,
	"seen_at" timestamp (6) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "registry_blobs" (
	"registry_id" integer NOT NULL,
	"digest" text NOT NULL,
	"size" bigint NOT NULL,
	"seen_at" timestamp (6) with time zone NOT NULL,
	CONSTRAINT "registry_blobs_registry_id_digest_pk" PRIMARY KEY("registry_id","digest")
);
--> statement-breakpoint
CREATE TABLE "registry_events" (
	"id" text PRIMARY KEY NOT NULL,
	"seen_at" timestamp (6) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "registry_repositories" (
	"id" serial PRIMARY KEY NOT NULL,
	"registry_id" integer NOT NULL,
	"name" text NOT NULL,
	"pull_count" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"updated_at" timestamp (6) with time zone NOT NULL,
	"seen_at" timestamp (6) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "registry_tags" (
	"id" serial PRIMARY KEY NOT NULL,
	"repository_id" integer NOT NULL,
	"artifact_id" integer NOT NULL,
	"name" text NOT NULL,
	"pushed_at" timestamp (6) with time zone NOT NULL,
	"pulled_at" timestamp (6) with time zone,
	"seen_at" timestamp (6) with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "registries" (
	"id" serial PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"storage_limit" bigint NOT NULL,
	"storage_used" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"updated_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone,
	"removed_at" timestamp (6) with time zone
);
--> statement-breakpoint
CREATE TABLE "registry_authority" (
	"id" integer PRIMARY KEY NOT NULL,
	"keys" "bytea" NOT NULL,
	"api_url" text,
	"api_seen_at" timestamp (6) with time zone
);
--> statement-breakpoint
CREATE TABLE "registry_hosts" (
	"region_id" integer PRIMARY KEY NOT NULL,
	"address" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "registry_pushes" (
	"registry_id" integer NOT NULL,
	"repository" text NOT NULL,
	"granted_at" timestamp (6) with time zone NOT NULL,
	"held_until" timestamp (6) with time zone,
	CONSTRAINT "registry_pushes_registry_id_repository_pk" PRIMARY KEY("registry_id","repository")
);
--> statement-breakpoint
CREATE TABLE "registry_removals" (
	"id" uuid PRIMARY KEY NOT NULL,
	"registry_id" integer NOT NULL,
	"repository" text NOT NULL,
	"digest" text,
	"tag" text
);
--> statement-breakpoint
CREATE TABLE "registry_users" (
	"id" serial PRIMARY KEY NOT NULL,
	"registry_id" integer NOT NULL,
	"name" text NOT NULL,
	"secret_mac" "bytea" NOT NULL,
	"duration" integer NOT NULL,
	"read_only" boolean NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"expires_at" timestamp (6) with time zone
);
--> statement-breakpoint
CREATE TABLE "webhooks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"url" text NOT NULL,
	"secret" "bytea" NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "quota_counters" ADD COLUMN "alerted_at" timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "clients" ADD COLUMN "emails" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "notification_deliveries" ADD CONSTRAINT "notification_deliveries_notification_id_notifications_id_fk" FOREIGN KEY ("notification_id") REFERENCES "public"."notifications"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "notification_deliveries" ADD CONSTRAINT "notification_deliveries_webhook_id_webhooks_id_fk" FOREIGN KEY ("webhook_id") REFERENCES "public"."webhooks"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_artifacts" ADD CONSTRAINT "registry_artifacts_repository_id_registry_repositories_id_fk" FOREIGN KEY ("repository_id") REFERENCES "public"."registry_repositories"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_blobs" ADD CONSTRAINT "registry_blobs_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_repositories" ADD CONSTRAINT "registry_repositories_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_tags" ADD CONSTRAINT "registry_tags_repository_id_registry_repositories_id_fk" FOREIGN KEY ("repository_id") REFERENCES "public"."registry_repositories"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_tags" ADD CONSTRAINT "registry_tags_artifact_id_registry_artifacts_id_fk" FOREIGN KEY ("artifact_id") REFERENCES "public"."registry_artifacts"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_pushes" ADD CONSTRAINT "registry_pushes_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_removals" ADD CONSTRAINT "registry_removals_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "registry_users" ADD CONSTRAINT "registry_users_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "notification_deliveries_notification" ON "notification_deliveries" USING btree ("notification_id");--> statement-breakpoint
CREATE INDEX "notification_deliveries_webhook" ON "notification_deliveries" USING btree ("webhook_id");--> statement-breakpoint
CREATE INDEX "notification_deliveries_pending" ON "notification_deliveries" USING btree ("next_attempt_at") WHERE "notification_deliveries"."state" = 'pending';--> statement-breakpoint
CREATE INDEX "notifications_client" ON "notifications" USING btree ("client_id","created_at","id");--> statement-breakpoint
CREATE UNIQUE INDEX "registry_artifacts_digest" ON "registry_artifacts" USING btree ("repository_id","digest");--> statement-breakpoint
CREATE INDEX "registry_events_seen" ON "registry_events" USING btree ("seen_at");--> statement-breakpoint
CREATE UNIQUE INDEX "registry_repositories_name" ON "registry_repositories" USING btree ("registry_id","name");--> statement-breakpoint
CREATE UNIQUE INDEX "registry_tags_name" ON "registry_tags" USING btree ("repository_id","name");--> statement-breakpoint
CREATE INDEX "registry_tags_artifact" ON "registry_tags" USING btree ("artifact_id");--> statement-breakpoint
CREATE UNIQUE INDEX "registries_name" ON "registries" USING btree ("project_id","region_id","name") WHERE "registries"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "registries_client" ON "registries" USING btree ("client_id","region_id");--> statement-breakpoint
CREATE INDEX "registries_leaving" ON "registries" USING btree ("region_id") WHERE "registries"."deleted_at" is not null;--> statement-breakpoint
CREATE INDEX "registry_removals_registry" ON "registry_removals" USING btree ("registry_id");--> statement-breakpoint
CREATE UNIQUE INDEX "registry_users_name" ON "registry_users" USING btree ("registry_id","name");--> statement-breakpoint
CREATE INDEX "registry_users_login" ON "registry_users" USING btree ("name","secret_mac");--> statement-breakpoint
CREATE INDEX "webhooks_client" ON "webhooks" USING btree ("client_id","created_at","id");