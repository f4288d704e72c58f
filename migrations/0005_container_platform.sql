CREATE TABLE "audit_entries" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_entries_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp (6) with time zone NOT NULL,
	"client_id" integer,
	"project_id" integer,
	"region_id" integer,
	"token_id" integer,
	"operation" text NOT NULL,
	"request_id" text,
	"origin" jsonb NOT NULL,
	"changes" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"description" text NOT NULL,
	"containers" jsonb NOT NULL,
	"expire" timestamp (6) with time zone,
	"is_disabled" boolean NOT NULL,
	"key_id" text NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone,
	"version" bigint NOT NULL,
	CONSTRAINT "api_keys_key_id_unique" UNIQUE("key_id")
);
--> statement-breakpoint
CREATE TABLE "pull_secrets" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"registry" text NOT NULL,
	"login" text NOT NULL,
	"password" "bytea" NOT NULL,
	"updated_at" timestamp (6) with time zone NOT NULL,
	CONSTRAINT "pull_secrets_name" UNIQUE("project_id","region_id","name")
);
--> statement-breakpoint
ALTER TABLE "idempotency_keys" ALTER COLUMN "created_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "clients" ALTER COLUMN "created_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "load_balancer_traffic" ALTER COLUMN "minute" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "networks" ALTER COLUMN "created_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "networks" ALTER COLUMN "updated_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "projects" ALTER COLUMN "created_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "projects" ALTER COLUMN "deleted_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "regions" ALTER COLUMN "created_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "secrets" ALTER COLUMN "expiration" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "secrets" ALTER COLUMN "not_after" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "secrets" ALTER COLUMN "created_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "subnets" ALTER COLUMN "created_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "subnets" ALTER COLUMN "updated_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "tokens" ALTER COLUMN "created_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "tokens" ALTER COLUMN "expires_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "tokens" ALTER COLUMN "revoked_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "webhooks" ALTER COLUMN "created_at" SET DATA TYPE timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pull_secrets" ADD CONSTRAINT "pull_secrets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_entries_client" ON "audit_entries" USING btree ("client_id","id");--> statement-breakpoint
CREATE INDEX "audit_entries_at" ON "audit_entries" USING brin ("at");--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_name" ON "api_keys" USING btree ("project_id","region_id","name") WHERE "api_keys"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "api_keys_version" ON "api_keys" USING btree ("version");