-- Generated from src/**/table.ts (npm run generate). The migrations beside it are what runs.

CREATE TABLE "audit_entries" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_entries_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone NOT NULL,
	"client_id" integer,
	"project_id" integer,
	"region_id" integer,
	"token_id" integer,
	"operation" text NOT NULL,
	"request_id" text,
	"origin" jsonb NOT NULL,
	"changes" jsonb NOT NULL
);

CREATE TABLE "idempotency_keys" (
	"client_id" integer NOT NULL,
	"key" text NOT NULL,
	"fingerprint" text NOT NULL,
	"answer" jsonb,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "idempotency_keys_client_id_key_pk" PRIMARY KEY("client_id","key")
);

CREATE TABLE "revisions" (
	"name" text PRIMARY KEY NOT NULL,
	"value" bigint NOT NULL
);

CREATE TABLE "row_counts" (
	"resource" text NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "row_counts_resource_project_id_region_id_pk" PRIMARY KEY("resource","project_id","region_id")
);

CREATE TABLE "quota_counters" (
	"client_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"kind" text NOT NULL,
	"usage" bigint DEFAULT 0 NOT NULL,
	"limit_override" bigint,
	CONSTRAINT "quota_counters_client_id_region_id_kind_pk" PRIMARY KEY("client_id","region_id","kind"),
	CONSTRAINT "quota_counters_usage_is_not_negative" CHECK ("quota_counters"."usage" >= 0)
);

CREATE TABLE "api_keys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"description" text NOT NULL,
	"containers" jsonb NOT NULL,
	"expire" timestamp with time zone,
	"is_disabled" boolean NOT NULL,
	"key_id" text NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"deleted_at" timestamp with time zone,
	"version" bigint NOT NULL,
	CONSTRAINT "api_keys_key_id_unique" UNIQUE("key_id")
);

CREATE TABLE "clients" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "clients_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"operator" boolean NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "clients_name_unique" UNIQUE("name")
);

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

CREATE TABLE "lb_members" (
	"id" uuid PRIMARY KEY NOT NULL,
	"pool_id" uuid NOT NULL,
	"position" integer NOT NULL,
	"address" text NOT NULL,
	"protocol_port" integer NOT NULL,
	"weight" integer NOT NULL,
	"backup" boolean NOT NULL,
	"admin_state_up" boolean NOT NULL,
	"monitor_address" text,
	"monitor_port" integer,
	"subnet_id" uuid,
	"instance_id" uuid,
	"operating_status" text NOT NULL
);

CREATE TABLE "lb_pools" (
	"id" uuid PRIMARY KEY NOT NULL,
	"load_balancer_id" uuid NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"protocol" text NOT NULL,
	"lb_algorithm" text NOT NULL,
	"admin_state_up" boolean NOT NULL,
	"ca_secret_id" uuid,
	"crl_secret_id" uuid,
	"secret_id" uuid,
	"health_monitor" jsonb,
	"session_persistence" jsonb,
	"timeout_client_data" integer,
	"timeout_member_connect" integer,
	"timeout_member_data" integer,
	"provisioning_status" text NOT NULL,
	"operating_status" text NOT NULL,
	"creator_task_id" uuid NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);

CREATE TABLE "lb_listeners" (
	"id" uuid PRIMARY KEY NOT NULL,
	"load_balancer_id" uuid NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"protocol" text NOT NULL,
	"protocol_port" integer NOT NULL,
	"connection_limit" integer NOT NULL,
	"allowed_cidrs" jsonb,
	"insert_x_forwarded" boolean NOT NULL,
	"secret_id" uuid,
	"sni_secret_ids" uuid[] NOT NULL,
	"user_list" jsonb NOT NULL,
	"timeout_client_data" integer,
	"timeout_member_connect" integer,
	"timeout_member_data" integer,
	"default_pool_id" uuid,
	"admin_state_up" boolean NOT NULL,
	"provisioning_status" text NOT NULL,
	"operating_status" text NOT NULL,
	"creator_task_id" uuid NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);

CREATE TABLE "load_balancers" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"flavor" text NOT NULL,
	"tags" jsonb NOT NULL,
	"admin_state_up" boolean NOT NULL,
	"preferred_connectivity" text NOT NULL,
	"logging" jsonb,
	"vip_ip_family" text NOT NULL,
	"vip_address" text NOT NULL,
	"vip_port_id" uuid NOT NULL,
	"vip_network_id" uuid NOT NULL,
	"vip_subnet_id" uuid NOT NULL,
	"provisioning_status" text NOT NULL,
	"operating_status" text NOT NULL,
	"creator_task_id" uuid NOT NULL,
	"generation" bigint NOT NULL,
	"observed_generation" bigint NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"updated_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);

CREATE TABLE "lb_listener_counters" (
	"listener_id" uuid PRIMARY KEY NOT NULL,
	"active_connections" bigint NOT NULL,
	"total_connections" bigint NOT NULL,
	"bytes_in" bigint NOT NULL,
	"bytes_out" bigint NOT NULL,
	"request_errors" bigint NOT NULL,
	"seen_total_connections" bigint NOT NULL,
	"seen_bytes_in" bigint NOT NULL,
	"seen_bytes_out" bigint NOT NULL,
	"seen_request_errors" bigint NOT NULL
);

CREATE TABLE "load_balancer_traffic" (
	"load_balancer_id" uuid NOT NULL,
	"minute" timestamp with time zone NOT NULL,
	"bytes_in" bigint NOT NULL,
	"bytes_out" bigint NOT NULL,
	CONSTRAINT "load_balancer_traffic_load_balancer_id_minute_pk" PRIMARY KEY("load_balancer_id","minute")
);

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

CREATE TABLE "projects" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "projects_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"client_id" integer NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"is_default" boolean NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"deleted_at" timestamp with time zone
);

CREATE TABLE "pull_secrets" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"registry" text NOT NULL,
	"login" text NOT NULL,
	"password" "bytea" NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "pull_secrets_name" UNIQUE("project_id","region_id","name")
);

CREATE TABLE "regions" (
	"id" integer PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);

CREATE TABLE "secrets" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"secret_type" text NOT NULL,
	"kind" text,
	"payload" "bytea" NOT NULL,
	"content_type" text NOT NULL,
	"algorithm" text,
	"bit_length" integer,
	"mode" text,
	"expiration" timestamp with time zone,
	"not_after" timestamp with time zone,
	"subject_names" text[] NOT NULL,
	"creator_task_id" uuid NOT NULL,
	"created_at" timestamp with time zone NOT NULL
);

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

CREATE TABLE "workers" (
	"id" text PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"pid" integer NOT NULL,
	"region_ids" integer[] NOT NULL,
	"drivers" jsonb NOT NULL,
	"started_at" timestamp (6) with time zone NOT NULL,
	"seen_at" timestamp (6) with time zone NOT NULL
);

ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "file_share_access_rules" ADD CONSTRAINT "file_share_access_rules_file_share_id_file_shares_id_fk" FOREIGN KEY ("file_share_id") REFERENCES "public"."file_shares"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "file_shares" ADD CONSTRAINT "file_shares_network_id_networks_id_fk" FOREIGN KEY ("network_id") REFERENCES "public"."networks"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "file_shares" ADD CONSTRAINT "file_shares_subnet_id_subnets_id_fk" FOREIGN KEY ("subnet_id") REFERENCES "public"."subnets"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "lb_members" ADD CONSTRAINT "lb_members_pool_id_lb_pools_id_fk" FOREIGN KEY ("pool_id") REFERENCES "public"."lb_pools"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_pools" ADD CONSTRAINT "lb_pools_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_listeners" ADD CONSTRAINT "lb_listeners_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_listeners" ADD CONSTRAINT "lb_listeners_default_pool_id_lb_pools_id_fk" FOREIGN KEY ("default_pool_id") REFERENCES "public"."lb_pools"("id") ON DELETE set null ON UPDATE no action;
ALTER TABLE "load_balancers" ADD CONSTRAINT "load_balancers_vip_network_id_networks_id_fk" FOREIGN KEY ("vip_network_id") REFERENCES "public"."networks"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "load_balancers" ADD CONSTRAINT "load_balancers_vip_subnet_id_subnets_id_fk" FOREIGN KEY ("vip_subnet_id") REFERENCES "public"."subnets"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "lb_listener_counters" ADD CONSTRAINT "lb_listener_counters_listener_id_lb_listeners_id_fk" FOREIGN KEY ("listener_id") REFERENCES "public"."lb_listeners"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "load_balancer_traffic" ADD CONSTRAINT "load_balancer_traffic_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "networks" ADD CONSTRAINT "networks_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "projects" ADD CONSTRAINT "projects_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "pull_secrets" ADD CONSTRAINT "pull_secrets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "secrets" ADD CONSTRAINT "secrets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "subnets" ADD CONSTRAINT "subnets_network_id_networks_id_fk" FOREIGN KEY ("network_id") REFERENCES "public"."networks"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "tokens" ADD CONSTRAINT "tokens_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;
CREATE INDEX "audit_entries_client" ON "audit_entries" USING btree ("client_id","id");
CREATE INDEX "audit_entries_at" ON "audit_entries" USING brin ("at");
CREATE INDEX "idempotency_keys_created" ON "idempotency_keys" USING btree ("created_at");
CREATE UNIQUE INDEX "api_keys_name" ON "api_keys" USING btree ("project_id","region_id","name") WHERE "api_keys"."deleted_at" is null;
CREATE INDEX "api_keys_version" ON "api_keys" USING btree ("version");
CREATE UNIQUE INDEX "file_share_access_rules_network" ON "file_share_access_rules" USING btree ("file_share_id","network");
CREATE INDEX "file_shares_project" ON "file_shares" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "file_shares_client" ON "file_shares" USING btree ("client_id","region_id");
CREATE INDEX "file_shares_network" ON "file_shares" USING btree ("network_id");
CREATE INDEX "file_shares_subnet" ON "file_shares" USING btree ("subnet_id");
CREATE INDEX "file_shares_unconverged" ON "file_shares" USING btree ("region_id") WHERE "file_shares"."observed_generation" < "file_shares"."generation";
CREATE UNIQUE INDEX "lb_members_endpoint" ON "lb_members" USING btree ("pool_id","address","protocol_port");
CREATE INDEX "lb_pools_project" ON "lb_pools" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "lb_pools_load_balancer" ON "lb_pools" USING btree ("load_balancer_id");
CREATE INDEX "lb_listeners_project" ON "lb_listeners" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "lb_listeners_pool" ON "lb_listeners" USING btree ("default_pool_id");
CREATE UNIQUE INDEX "lb_listeners_port" ON "lb_listeners" USING btree ("load_balancer_id","protocol_port",("protocol" = 'UDP'));
CREATE INDEX "load_balancers_project" ON "load_balancers" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "load_balancers_network" ON "load_balancers" USING btree ("vip_network_id");
CREATE INDEX "load_balancers_subnet" ON "load_balancers" USING btree ("vip_subnet_id");
CREATE UNIQUE INDEX "load_balancers_vip" ON "load_balancers" USING btree ("region_id","vip_address");
CREATE INDEX "load_balancers_unconverged" ON "load_balancers" USING btree ("region_id") WHERE "load_balancers"."observed_generation" < "load_balancers"."generation";
CREATE INDEX "load_balancer_traffic_minute" ON "load_balancer_traffic" USING btree ("minute");
CREATE INDEX "networks_project" ON "networks" USING btree ("project_id","region_id","created_at","id");
CREATE UNIQUE INDEX "networks_default" ON "networks" USING btree ("project_id","region_id") WHERE "networks"."is_default";
CREATE UNIQUE INDEX "projects_name" ON "projects" USING btree ("client_id","name") WHERE "projects"."deleted_at" is null;
CREATE UNIQUE INDEX "projects_default" ON "projects" USING btree ("client_id") WHERE "projects"."is_default" and "projects"."deleted_at" is null;
CREATE INDEX "secrets_project" ON "secrets" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "subnets_project" ON "subnets" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "subnets_network" ON "subnets" USING btree ("network_id","created_at");
CREATE INDEX "tasks_client_created" ON "tasks" USING btree ("client_id","created_on","id");
CREATE INDEX "tasks_active" ON "tasks" USING btree ("resource_id") WHERE "tasks"."state" in ('NEW', 'RUNNING');
