CREATE TABLE "idempotency_keys" (
	"client_id" integer NOT NULL,
	"key" text NOT NULL,
	"fingerprint" text NOT NULL,
	"answer" jsonb,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "idempotency_keys_client_id_key_pk" PRIMARY KEY("client_id","key")
);
--> statement-breakpoint
CREATE TABLE "revisions" (
	"name" text PRIMARY KEY NOT NULL,
	"value" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "row_counts" (
	"resource" text NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "row_counts_resource_project_id_region_id_pk" PRIMARY KEY("resource","project_id","region_id")
);
--> statement-breakpoint
CREATE TABLE "quota_counters" (
	"client_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"kind" text NOT NULL,
	"usage" bigint DEFAULT 0 NOT NULL,
	"limit_override" bigint,
	CONSTRAINT "quota_counters_client_id_region_id_kind_pk" PRIMARY KEY("client_id","region_id","kind"),
	CONSTRAINT "quota_counters_usage_is_not_negative" CHECK ("quota_counters"."usage" >= 0)
);
--> statement-breakpoint
CREATE TABLE "clients" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "clients_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"operator" boolean NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "clients_name_unique" UNIQUE("name")
);
--> statement-breakpoint
CREATE TABLE "file_share_access_rules" (
	"id" uuid PRIMARY KEY NOT NULL,
	"file_share_id" uuid NOT NULL,
	"access_level" text NOT NULL,
	"network" text NOT NULL,
	"access_to" text NOT NULL,
	"state" text NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);
--> statement-breakpoint
CREATE TABLE "file_shares" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"type_name" text NOT NULL,
	"size" bigint NOT NULL,
	"observed_size" bigint,
	"observed_real" boolean DEFAULT false NOT NULL,
	"network_id" uuid NOT NULL,
	"subnet_id" uuid NOT NULL,
	"root_squash" boolean NOT NULL,
	"allowed_characters" text,
	"path_length" text,
	"tags" jsonb NOT NULL,
	"status" text NOT NULL,
	"connection_point" text,
	"creator_task_id" uuid NOT NULL,
	"generation" bigint NOT NULL,
	"observed_generation" bigint NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);
--> statement-breakpoint
CREATE TABLE "networks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"type" text NOT NULL,
	"segmentation_id" integer NOT NULL,
	"mtu" integer NOT NULL,
	"is_default" boolean NOT NULL,
	"tags" jsonb NOT NULL,
	"creator_task_id" uuid,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "projects" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "projects_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"client_id" integer NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"is_default" boolean NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"deleted_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "regions" (
	"id" integer PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "subnets" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"network_id" uuid NOT NULL,
	"name" text NOT NULL,
	"cidr" "cidr" NOT NULL,
	"ip_version" integer NOT NULL,
	"gateway_ip" text,
	"enable_dhcp" boolean NOT NULL,
	"dns_nameservers" jsonb NOT NULL,
	"host_routes" jsonb NOT NULL,
	"tags" jsonb NOT NULL,
	"creator_task_id" uuid,
	"created_at" timestamp with time zone NOT NULL,
	"updated_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tokens" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tokens_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"key_id" text NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"client_id" integer NOT NULL,
	"name" text NOT NULL,
	"role" text NOT NULL,
	"project_ids" integer[],
	"created_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	CONSTRAINT "tokens_key_id_unique" UNIQUE("key_id")
);
--> statement-breakpoint
CREATE TABLE "tasks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"project_id" integer,
	"region_id" integer,
	"user_id" integer NOT NULL,
	"task_type" text NOT NULL,
	"state" text NOT NULL,
	"resource" text NOT NULL,
	"resource_id" text NOT NULL,
	"generation" bigint NOT NULL,
	"created_resources" jsonb,
	"data" jsonb,
	"error" text,
	"request_id" text,
	"created_on" timestamp (6) with time zone NOT NULL,
	"updated_on" timestamp (6) with time zone NOT NULL,
	"finished_on" timestamp (6) with time zone,
	"acknowledged_at" timestamp (6) with time zone,
	"acknowledged_by" integer
);
--> statement-breakpoint
CREATE TABLE "workers" (
	"id" text PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"pid" integer NOT NULL,
	"region_ids" integer[] NOT NULL,
	"drivers" jsonb NOT NULL,
	"started_at" timestamp (6) with time zone NOT NULL,
	"seen_at" timestamp (6) with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "file_share_access_rules" ADD CONSTRAINT "file_share_access_rules_file_share_id_file_shares_id_fk" FOREIGN KEY ("file_share_id") REFERENCES "public"."file_shares"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file_shares" ADD CONSTRAINT "file_shares_network_id_networks_id_fk" FOREIGN KEY ("network_id") REFERENCES "public"."networks"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file_shares" ADD CONSTRAINT "file_shares_subnet_id_subnets_id_fk" FOREIGN KEY ("subnet_id") REFERENCES "public"."subnets"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "networks" ADD CONSTRAINT "networks_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "projects" ADD CONSTRAINT "projects_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "subnets" ADD CONSTRAINT "subnets_network_id_networks_id_fk" FOREIGN KEY ("network_id") REFERENCES "public"."networks"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "tokens" ADD CONSTRAINT "tokens_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "idempotency_keys_created" ON "idempotency_keys" USING btree ("created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "file_share_access_rules_network" ON "file_share_access_rules" USING btree ("file_share_id","network");--> statement-breakpoint
CREATE INDEX "file_shares_project" ON "file_shares" USING btree ("project_id","region_id","created_at","id");--> statement-breakpoint
CREATE INDEX "file_shares_client" ON "file_shares" USING btree ("client_id","region_id");--> statement-breakpoint
CREATE INDEX "file_shares_network" ON "file_shares" USING btree ("network_id");--> statement-breakpoint
CREATE INDEX "file_shares_subnet" ON "file_shares" USING btree ("subnet_id");--> statement-breakpoint
CREATE INDEX "file_shares_unconverged" ON "file_shares" USING btree ("region_id") WHERE "file_shares"."observed_generation" < "file_shares"."generation";--> statement-breakpoint
CREATE INDEX "networks_project" ON "networks" USING btree ("project_id","region_id","created_at","id");--> statement-breakpoint
CREATE UNIQUE INDEX "networks_default" ON "networks" USING btree ("project_id","region_id") WHERE "networks"."is_default";--> statement-breakpoint
CREATE UNIQUE INDEX "projects_name" ON "projects" USING btree ("client_id","name") WHERE "projects"."deleted_at" is null;--> statement-breakpoint
CREATE UNIQUE INDEX "projects_default" ON "projects" USING btree ("client_id") WHERE "projects"."is_default" and "projects"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "subnets_project" ON "subnets" USING btree ("project_id","region_id","created_at","id");--> statement-breakpoint
CREATE INDEX "subnets_network" ON "subnets" USING btree ("network_id","created_at");--> statement-breakpoint
CREATE INDEX "tasks_client_created" ON "tasks" USING btree ("client_id","created_on","id");--> statement-breakpoint
CREATE INDEX "tasks_active" ON "tasks" USING btree ("resource_id") WHERE "tasks"."state" in ('NEW', 'RUNNING');