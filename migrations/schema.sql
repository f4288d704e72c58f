-- Generated from src/**/table.ts (npm run generate). The migrations beside it are what runs.

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

CREATE TABLE "backup_runs" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "backup_runs_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"scheduled_at" timestamp (6) with time zone NOT NULL,
	"started_at" timestamp (6) with time zone NOT NULL,
	"ended_at" timestamp (6) with time zone,
	"host" text NOT NULL,
	"backup_id" text,
	"error" text,
	CONSTRAINT "backup_runs_scheduled_at" UNIQUE("scheduled_at")
);

CREATE TABLE "host_observations" (
	"region_id" integer NOT NULL,
	"host" text NOT NULL,
	"kind" text NOT NULL,
	"id" text NOT NULL,
	"revision" bigint NOT NULL,
	"error" json,
	CONSTRAINT "host_observations_region_id_host_kind_id_pk" PRIMARY KEY("region_id","host","kind","id")
);

CREATE TABLE "host_readings" (
	"region_id" integer NOT NULL,
	"host" text NOT NULL,
	"kind" text NOT NULL,
	"read_at" timestamp (6) with time zone NOT NULL,
	"readings" text NOT NULL,
	CONSTRAINT "host_readings_region_id_host_kind_pk" PRIMARY KEY("region_id","host","kind")
);

CREATE TABLE "hosts" (
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"address" text NOT NULL,
	"interface" text,
	"state" text DEFAULT 'active' NOT NULL,
	"incarnation" uuid,
	"lease_until" timestamp (6) with time zone NOT NULL,
	"converged" boolean DEFAULT false NOT NULL,
	"report" json NOT NULL,
	"joined_at" timestamp (6) with time zone NOT NULL,
	"started_at" timestamp (6) with time zone NOT NULL,
	CONSTRAINT "hosts_region_id_name_pk" PRIMARY KEY("region_id","name"),
	CONSTRAINT "hosts_state" CHECK ("hosts"."state" in ('active', 'draining', 'drained'))
);

CREATE TABLE "published_states" (
	"region_id" integer NOT NULL,
	"kind" text NOT NULL,
	"id" text NOT NULL,
	"revision" bigint NOT NULL,
	"state" "bytea",
	CONSTRAINT "published_states_region_id_kind_id_pk" PRIMARY KEY("region_id","kind","id")
);

CREATE TABLE "idempotency_keys" (
	"token_id" integer NOT NULL,
	"key" text NOT NULL,
	"fingerprint" text NOT NULL,
	"answer" jsonb,
	"created_at" timestamp (6) with time zone NOT NULL,
	CONSTRAINT "idempotency_keys_token_id_key_pk" PRIMARY KEY("token_id","key")
);

CREATE TABLE "acme_certificates" (
	"id" integer PRIMARY KEY NOT NULL,
	"state" "bytea",
	"version" integer DEFAULT 0 NOT NULL,
	"issuing_until" timestamp (6) with time zone,
	"next_attempt_at" timestamp (6) with time zone,
	"failures" integer DEFAULT 0 NOT NULL,
	"error" text
);

CREATE TABLE "acme_challenges" (
	"token" text PRIMARY KEY NOT NULL,
	"response" text NOT NULL
);

CREATE TABLE "development_clock" (
	"one" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"offset_ms" bigint NOT NULL,
	CONSTRAINT "development_clock_is_one" CHECK ("development_clock"."one")
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
	"alerted_at" timestamp (6) with time zone,
	CONSTRAINT "quota_counters_client_id_region_id_kind_pk" PRIMARY KEY("client_id","region_id","kind"),
	CONSTRAINT "quota_counters_usage_is_not_negative" CHECK ("quota_counters"."usage" >= 0)
);

CREATE TABLE "quota_crossings" (
	"client_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"kind" text NOT NULL,
	"usage" bigint NOT NULL,
	"limit" bigint NOT NULL,
	CONSTRAINT "quota_crossings_client_id_region_id_kind_pk" PRIMARY KEY("client_id","region_id","kind")
);

CREATE TABLE "quota_thresholds" (
	"client_id" integer PRIMARY KEY NOT NULL,
	"threshold" integer,
	"last_message" json,
	"last_sending" timestamp (6) with time zone
);

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

CREATE TABLE "clients" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "clients_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"name" text NOT NULL,
	"operator" boolean NOT NULL,
	"emails" text[] DEFAULT '{}' NOT NULL,
	"weight" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	CONSTRAINT "clients_name_unique" UNIQUE("name")
);

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

CREATE TABLE "file_share_usage" (
	"file_share_id" uuid PRIMARY KEY NOT NULL,
	"used_bytes" bigint NOT NULL,
	"total_bytes" bigint NOT NULL
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
	"root_squash" boolean,
	"allowed_characters" text,
	"path_length" text,
	"tags" jsonb NOT NULL,
	"status" text NOT NULL,
	"connection_point" text,
	"nfs_group" text,
	"export_id" integer,
	"creator_task_id" uuid NOT NULL,
	"generation" bigint NOT NULL,
	"observed_generation" bigint NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);

CREATE TABLE "nfs_groups" (
	"region_id" integer NOT NULL,
	"address" text NOT NULL,
	"last_export_id" integer NOT NULL,
	CONSTRAINT "nfs_groups_region_id_address_pk" PRIMARY KEY("region_id","address")
);

CREATE TABLE "lifecycle_policy_missed_runs" (
	"policy_id" integer NOT NULL,
	"schedule_id" uuid NOT NULL,
	"scheduled_at" timestamp (6) with time zone NOT NULL,
	"noticed_at" timestamp (6) with time zone NOT NULL,
	"started_at" timestamp (6) with time zone,
	"skipped" integer DEFAULT 0 NOT NULL,
	"reported_at" timestamp (6) with time zone,
	CONSTRAINT "lifecycle_policy_missed_runs_schedule_id_scheduled_at_pk" PRIMARY KEY("schedule_id","scheduled_at")
);

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

CREATE TABLE "lifecycle_policy_runs" (
	"id" uuid PRIMARY KEY NOT NULL,
	"policy_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"schedule_id" uuid NOT NULL,
	"scheduled_at" timestamp (6) with time zone NOT NULL,
	"started_at" timestamp (6) with time zone NOT NULL,
	"task_id" uuid,
	"done_at" timestamp (6) with time zone
);

CREATE TABLE "lifecycle_policies" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "lifecycle_policies_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"client_id" integer NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"action" text NOT NULL,
	"status" text NOT NULL,
	"user_id" integer NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"missed_reported_at" timestamp (6) with time zone
);

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

CREATE TABLE "lifecycle_policy_volumes" (
	"policy_id" integer NOT NULL,
	"volume_id" uuid NOT NULL,
	CONSTRAINT "lifecycle_policy_volumes_policy_id_volume_id_pk" PRIMARY KEY("policy_id","volume_id")
);

CREATE TABLE "lb_l7_policies" (
	"id" uuid PRIMARY KEY NOT NULL,
	"load_balancer_id" uuid NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"listener_id" uuid NOT NULL,
	"position" integer NOT NULL,
	"action" text NOT NULL,
	"redirect_url" text,
	"redirect_prefix" text,
	"redirect_pool_id" uuid,
	"redirect_http_code" integer,
	"tags" text[] NOT NULL,
	"provisioning_status" text NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);

CREATE TABLE "lb_l7_rules" (
	"id" uuid PRIMARY KEY NOT NULL,
	"load_balancer_id" uuid NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"policy_id" uuid NOT NULL,
	"type" text NOT NULL,
	"compare_type" text NOT NULL,
	"key" text,
	"value" text NOT NULL,
	"invert" boolean NOT NULL,
	"tags" text[] NOT NULL,
	"provisioning_status" text NOT NULL,
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
	"vip_address_v6" text,
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
	"seen_request_errors" bigint NOT NULL,
	"seen_requests" bigint,
	"seen_server_errors" bigint
);

CREATE TABLE "lb_listener_traffic" (
	"listener_id" uuid NOT NULL,
	"minute" timestamp (6) with time zone NOT NULL,
	"bytes_in" bigint NOT NULL,
	"bytes_out" bigint NOT NULL,
	"requests" bigint DEFAULT 0 NOT NULL,
	"connections" bigint DEFAULT 0 NOT NULL,
	"open_connections" bigint DEFAULT 0 NOT NULL,
	"request_errors" bigint DEFAULT 0 NOT NULL,
	"server_errors" bigint DEFAULT 0 NOT NULL,
	CONSTRAINT "lb_listener_traffic_listener_id_minute_pk" PRIMARY KEY("listener_id","minute")
);

CREATE TABLE "load_balancer_traffic" (
	"load_balancer_id" uuid NOT NULL,
	"minute" timestamp (6) with time zone NOT NULL,
	"bytes_in" bigint NOT NULL,
	"bytes_out" bigint NOT NULL,
	"requests" bigint DEFAULT 0 NOT NULL,
	"connections" bigint DEFAULT 0 NOT NULL,
	"open_connections" bigint DEFAULT 0 NOT NULL,
	"request_errors" bigint DEFAULT 0 NOT NULL,
	"server_errors" bigint DEFAULT 0 NOT NULL,
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
	"created_at" timestamp (6) with time zone NOT NULL,
	"updated_at" timestamp (6) with time zone NOT NULL
);

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

CREATE TABLE "notifications" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"type" text NOT NULL,
	"subject" text NOT NULL,
	"body" json NOT NULL,
	"data" json NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL
);

CREATE TABLE "projects" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "projects_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"client_id" integer NOT NULL,
	"name" text NOT NULL,
	"description" text,
	"is_default" boolean NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"deleted_at" timestamp (6) with time zone
);

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

CREATE TABLE "quota_requests" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "quota_requests_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"client_id" integer NOT NULL,
	"description" text NOT NULL,
	"requested_limits" json NOT NULL,
	"status" text NOT NULL,
	"reason" text,
	"created_at" timestamp (6) with time zone NOT NULL,
	"updated_at" timestamp (6) with time zone
);

CREATE TABLE "regions" (
	"id" integer PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL
);

CREATE TABLE "registry_artifacts" (
	"id" serial PRIMARY KEY NOT NULL,
	"repository_id" integer NOT NULL,
	"digest" text NOT NULL,
	"size" bigint NOT NULL,
	"pushed_at" timestamp (6) with time zone NOT NULL,
	"pulled_at" timestamp (6) with time zone,
	"seen_at" timestamp (6) with time zone NOT NULL
);

CREATE TABLE "registry_blobs" (
	"registry_id" integer NOT NULL,
	"digest" text NOT NULL,
	"size" bigint NOT NULL,
	"seen_at" timestamp (6) with time zone NOT NULL,
	CONSTRAINT "registry_blobs_registry_id_digest_pk" PRIMARY KEY("registry_id","digest")
);

CREATE TABLE "registry_events" (
	"id" text PRIMARY KEY NOT NULL,
	"seen_at" timestamp (6) with time zone NOT NULL
);

CREATE TABLE "registry_repositories" (
	"id" serial PRIMARY KEY NOT NULL,
	"registry_id" integer NOT NULL,
	"name" text NOT NULL,
	"pull_count" bigint DEFAULT 0 NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"updated_at" timestamp (6) with time zone NOT NULL,
	"seen_at" timestamp (6) with time zone NOT NULL
);

CREATE TABLE "registry_tags" (
	"id" serial PRIMARY KEY NOT NULL,
	"repository_id" integer NOT NULL,
	"artifact_id" integer NOT NULL,
	"name" text NOT NULL,
	"pushed_at" timestamp (6) with time zone NOT NULL,
	"pulled_at" timestamp (6) with time zone,
	"seen_at" timestamp (6) with time zone NOT NULL
);

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

CREATE TABLE "registry_authority" (
	"id" integer PRIMARY KEY NOT NULL,
	"keys" "bytea" NOT NULL,
	"api_url" text,
	"api_seen_at" timestamp (6) with time zone
);

CREATE TABLE "registry_hosts" (
	"region_id" integer PRIMARY KEY NOT NULL,
	"address" text NOT NULL
);

CREATE TABLE "registry_pushes" (
	"registry_id" integer NOT NULL,
	"repository" text NOT NULL,
	"granted_at" timestamp (6) with time zone NOT NULL,
	"held_until" timestamp (6) with time zone,
	CONSTRAINT "registry_pushes_registry_id_repository_pk" PRIMARY KEY("registry_id","repository")
);

CREATE TABLE "registry_removals" (
	"id" uuid PRIMARY KEY NOT NULL,
	"registry_id" integer NOT NULL,
	"repository" text NOT NULL,
	"digest" text,
	"tag" text
);

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
	"expiration" timestamp (6) with time zone,
	"not_after" timestamp (6) with time zone,
	"subject_names" text[] NOT NULL,
	"creator_task_id" uuid NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL
);

CREATE TABLE "sessions" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "sessions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"key_id" text NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"token_id" integer NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"last_used_at" timestamp (6) with time zone NOT NULL,
	"expires_at" timestamp (6) with time zone NOT NULL,
	CONSTRAINT "sessions_key_id_unique" UNIQUE("key_id")
);

CREATE TABLE "snapshots" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"project_id" integer NOT NULL,
	"region_id" integer NOT NULL,
	"name" text NOT NULL,
	"volume_id" uuid NOT NULL,
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
	"created_at" timestamp (6) with time zone NOT NULL,
	"updated_at" timestamp (6) with time zone NOT NULL
);

CREATE TABLE "tokens" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "tokens_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"key_id" text NOT NULL,
	"secret_hash" "bytea" NOT NULL,
	"client_id" integer NOT NULL,
	"name" text NOT NULL,
	"identity" text,
	"role" text NOT NULL,
	"project_ids" integer[],
	"created_at" timestamp (6) with time zone NOT NULL,
	"last_used_at" timestamp (6) with time zone,
	"expires_at" timestamp (6) with time zone,
	"revoked_at" timestamp (6) with time zone,
	CONSTRAINT "tokens_key_id_unique" UNIQUE("key_id")
);

CREATE TABLE "user_action_deliveries" (
	"entry_id" bigint NOT NULL,
	"subscription_id" integer NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"next_attempt_at" timestamp (6) with time zone NOT NULL,
	"attempts" jsonb DEFAULT '[]'::jsonb NOT NULL,
	CONSTRAINT "user_action_deliveries_entry_id_subscription_id_pk" PRIMARY KEY("entry_id","subscription_id")
);

CREATE TABLE "user_action_subscriptions" (
	"id" integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "user_action_subscriptions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 2147483647 START WITH 1 CACHE 1),
	"client_id" integer NOT NULL,
	"url" text NOT NULL,
	"auth_header_name" text NOT NULL,
	"auth_header_value" "bytea" NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"busy_until" timestamp (6) with time zone,
	CONSTRAINT "user_action_subscriptions_client_id_unique" UNIQUE("client_id")
);

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

CREATE TABLE "webhooks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"client_id" integer NOT NULL,
	"url" text NOT NULL,
	"secret" "bytea" NOT NULL,
	"created_at" timestamp (6) with time zone NOT NULL
);

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
	"lifecycle_policy_id" integer,
	"schedule_id" uuid,
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

ALTER TABLE "host_observations" ADD CONSTRAINT "host_observations_region_id_host_hosts_region_id_name_fk" FOREIGN KEY ("region_id","host") REFERENCES "public"."hosts"("region_id","name") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "host_readings" ADD CONSTRAINT "host_readings_region_id_host_hosts_region_id_name_fk" FOREIGN KEY ("region_id","host") REFERENCES "public"."hosts"("region_id","name") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "file_share_access_rules" ADD CONSTRAINT "file_share_access_rules_file_share_id_file_shares_id_fk" FOREIGN KEY ("file_share_id") REFERENCES "public"."file_shares"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "file_share_usage" ADD CONSTRAINT "file_share_usage_file_share_id_file_shares_id_fk" FOREIGN KEY ("file_share_id") REFERENCES "public"."file_shares"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "file_shares" ADD CONSTRAINT "file_shares_network_id_networks_id_fk" FOREIGN KEY ("network_id") REFERENCES "public"."networks"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "file_shares" ADD CONSTRAINT "file_shares_subnet_id_subnets_id_fk" FOREIGN KEY ("subnet_id") REFERENCES "public"."subnets"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "lifecycle_policy_missed_runs" ADD CONSTRAINT "lifecycle_policy_missed_runs_policy_id_lifecycle_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lifecycle_policies"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lifecycle_policy_run_volumes" ADD CONSTRAINT "lifecycle_policy_run_volumes_run_id_lifecycle_policy_runs_id_fk" FOREIGN KEY ("run_id") REFERENCES "public"."lifecycle_policy_runs"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lifecycle_policy_runs" ADD CONSTRAINT "lifecycle_policy_runs_policy_id_lifecycle_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lifecycle_policies"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lifecycle_policy_schedules" ADD CONSTRAINT "lifecycle_policy_schedules_policy_id_lifecycle_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lifecycle_policies"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lifecycle_policy_volumes" ADD CONSTRAINT "lifecycle_policy_volumes_policy_id_lifecycle_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lifecycle_policies"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lifecycle_policy_volumes" ADD CONSTRAINT "lifecycle_policy_volumes_volume_id_volumes_id_fk" FOREIGN KEY ("volume_id") REFERENCES "public"."volumes"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_l7_policies" ADD CONSTRAINT "lb_l7_policies_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_l7_policies" ADD CONSTRAINT "lb_l7_policies_listener_id_lb_listeners_id_fk" FOREIGN KEY ("listener_id") REFERENCES "public"."lb_listeners"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_l7_policies" ADD CONSTRAINT "lb_l7_policies_redirect_pool_id_lb_pools_id_fk" FOREIGN KEY ("redirect_pool_id") REFERENCES "public"."lb_pools"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_l7_rules" ADD CONSTRAINT "lb_l7_rules_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_l7_rules" ADD CONSTRAINT "lb_l7_rules_policy_id_lb_l7_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lb_l7_policies"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_listeners" ADD CONSTRAINT "lb_listeners_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_listeners" ADD CONSTRAINT "lb_listeners_default_pool_id_lb_pools_id_fk" FOREIGN KEY ("default_pool_id") REFERENCES "public"."lb_pools"("id") ON DELETE set null ON UPDATE no action;
ALTER TABLE "lb_members" ADD CONSTRAINT "lb_members_pool_id_lb_pools_id_fk" FOREIGN KEY ("pool_id") REFERENCES "public"."lb_pools"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_pools" ADD CONSTRAINT "lb_pools_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "load_balancers" ADD CONSTRAINT "load_balancers_vip_network_id_networks_id_fk" FOREIGN KEY ("vip_network_id") REFERENCES "public"."networks"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "load_balancers" ADD CONSTRAINT "load_balancers_vip_subnet_id_subnets_id_fk" FOREIGN KEY ("vip_subnet_id") REFERENCES "public"."subnets"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "lb_listener_counters" ADD CONSTRAINT "lb_listener_counters_listener_id_lb_listeners_id_fk" FOREIGN KEY ("listener_id") REFERENCES "public"."lb_listeners"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "lb_listener_traffic" ADD CONSTRAINT "lb_listener_traffic_listener_id_lb_listeners_id_fk" FOREIGN KEY ("listener_id") REFERENCES "public"."lb_listeners"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "load_balancer_traffic" ADD CONSTRAINT "load_balancer_traffic_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "networks" ADD CONSTRAINT "networks_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "notification_deliveries" ADD CONSTRAINT "notification_deliveries_notification_id_notifications_id_fk" FOREIGN KEY ("notification_id") REFERENCES "public"."notifications"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "notification_deliveries" ADD CONSTRAINT "notification_deliveries_webhook_id_webhooks_id_fk" FOREIGN KEY ("webhook_id") REFERENCES "public"."webhooks"("id") ON DELETE set null ON UPDATE no action;
ALTER TABLE "projects" ADD CONSTRAINT "projects_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "pull_secrets" ADD CONSTRAINT "pull_secrets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "quota_requests" ADD CONSTRAINT "quota_requests_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "registry_artifacts" ADD CONSTRAINT "registry_artifacts_repository_id_registry_repositories_id_fk" FOREIGN KEY ("repository_id") REFERENCES "public"."registry_repositories"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "registry_blobs" ADD CONSTRAINT "registry_blobs_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "registry_repositories" ADD CONSTRAINT "registry_repositories_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "registry_tags" ADD CONSTRAINT "registry_tags_repository_id_registry_repositories_id_fk" FOREIGN KEY ("repository_id") REFERENCES "public"."registry_repositories"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "registry_tags" ADD CONSTRAINT "registry_tags_artifact_id_registry_artifacts_id_fk" FOREIGN KEY ("artifact_id") REFERENCES "public"."registry_artifacts"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "registry_pushes" ADD CONSTRAINT "registry_pushes_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "registry_removals" ADD CONSTRAINT "registry_removals_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "registry_users" ADD CONSTRAINT "registry_users_registry_id_registries_id_fk" FOREIGN KEY ("registry_id") REFERENCES "public"."registries"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "secrets" ADD CONSTRAINT "secrets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_token_id_tokens_id_fk" FOREIGN KEY ("token_id") REFERENCES "public"."tokens"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "snapshots" ADD CONSTRAINT "snapshots_volume_id_volumes_id_fk" FOREIGN KEY ("volume_id") REFERENCES "public"."volumes"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "subnets" ADD CONSTRAINT "subnets_network_id_networks_id_fk" FOREIGN KEY ("network_id") REFERENCES "public"."networks"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "tokens" ADD CONSTRAINT "tokens_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "user_action_deliveries" ADD CONSTRAINT "user_action_deliveries_entry_id_audit_entries_id_fk" FOREIGN KEY ("entry_id") REFERENCES "public"."audit_entries"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "user_action_deliveries" ADD CONSTRAINT "user_action_deliveries_subscription_id_user_action_subscriptions_id_fk" FOREIGN KEY ("subscription_id") REFERENCES "public"."user_action_subscriptions"("id") ON DELETE cascade ON UPDATE no action;
ALTER TABLE "user_action_subscriptions" ADD CONSTRAINT "user_action_subscriptions_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;
CREATE INDEX "audit_entries_client" ON "audit_entries" USING btree ("client_id","id");
CREATE INDEX "audit_entries_at" ON "audit_entries" USING brin ("at");
CREATE INDEX "audit_entries_keys" ON "audit_entries" USING gin (cloudyard_audit_keys("changes"));
CREATE INDEX "published_states_revision" ON "published_states" USING btree ("region_id","revision");
CREATE INDEX "idempotency_keys_created" ON "idempotency_keys" USING btree ("created_at");
CREATE UNIQUE INDEX "api_keys_name" ON "api_keys" USING btree ("project_id","region_id","name") WHERE "api_keys"."deleted_at" is null;
CREATE INDEX "api_keys_version" ON "api_keys" USING btree ("version");
CREATE UNIQUE INDEX "file_share_access_rules_network" ON "file_share_access_rules" USING btree ("file_share_id","network");
CREATE INDEX "file_shares_project" ON "file_shares" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "file_shares_client" ON "file_shares" USING btree ("client_id","region_id");
CREATE INDEX "file_shares_network" ON "file_shares" USING btree ("network_id");
CREATE INDEX "file_shares_subnet" ON "file_shares" USING btree ("subnet_id");
CREATE UNIQUE INDEX "file_shares_export" ON "file_shares" USING btree ("region_id","nfs_group","export_id");
CREATE INDEX "file_shares_unconverged" ON "file_shares" USING btree ("region_id") WHERE "file_shares"."observed_generation" < "file_shares"."generation";
CREATE INDEX "lifecycle_policy_missed_runs_reported" ON "lifecycle_policy_missed_runs" USING btree ("reported_at");
CREATE INDEX "lifecycle_policy_missed_runs_open" ON "lifecycle_policy_missed_runs" USING btree ("policy_id") WHERE "lifecycle_policy_missed_runs"."reported_at" is null;
CREATE UNIQUE INDEX "lifecycle_policy_run_volumes_run" ON "lifecycle_policy_run_volumes" USING btree ("run_id","volume_id");
CREATE INDEX "lifecycle_policy_run_volumes_snapshot" ON "lifecycle_policy_run_volumes" USING btree ("snapshot_id");
CREATE INDEX "lifecycle_policy_run_volumes_unsettled" ON "lifecycle_policy_run_volumes" USING btree ("region_id","state") WHERE "lifecycle_policy_run_volumes"."state" in ('pending', 'running');
CREATE INDEX "lifecycle_policy_run_volumes_expiring" ON "lifecycle_policy_run_volumes" USING btree ("region_id","expire_at") WHERE "lifecycle_policy_run_volumes"."expire_at" is not null;
CREATE UNIQUE INDEX "lifecycle_policy_runs_instant" ON "lifecycle_policy_runs" USING btree ("schedule_id","scheduled_at");
CREATE INDEX "lifecycle_policy_runs_policy" ON "lifecycle_policy_runs" USING btree ("policy_id","scheduled_at","id");
CREATE INDEX "lifecycle_policy_runs_open" ON "lifecycle_policy_runs" USING btree ("region_id") WHERE "lifecycle_policy_runs"."done_at" is null;
CREATE INDEX "lifecycle_policy_runs_done" ON "lifecycle_policy_runs" USING btree ("done_at");
CREATE INDEX "lifecycle_policies_project" ON "lifecycle_policies" USING btree ("project_id","region_id","id");
CREATE INDEX "lifecycle_policy_schedules_policy" ON "lifecycle_policy_schedules" USING btree ("policy_id","position");
CREATE INDEX "lifecycle_policy_schedules_due" ON "lifecycle_policy_schedules" USING btree ("region_id","next_run_at") WHERE "lifecycle_policy_schedules"."next_run_at" is not null;
CREATE INDEX "lifecycle_policy_volumes_volume" ON "lifecycle_policy_volumes" USING btree ("volume_id");
CREATE INDEX "lb_l7_policies_project" ON "lb_l7_policies" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "lb_l7_policies_load_balancer" ON "lb_l7_policies" USING btree ("load_balancer_id");
CREATE INDEX "lb_l7_policies_listener" ON "lb_l7_policies" USING btree ("listener_id","position");
CREATE INDEX "lb_l7_policies_pool" ON "lb_l7_policies" USING btree ("redirect_pool_id");
CREATE INDEX "lb_l7_rules_load_balancer" ON "lb_l7_rules" USING btree ("load_balancer_id");
CREATE INDEX "lb_l7_rules_policy" ON "lb_l7_rules" USING btree ("policy_id","created_at","id");
CREATE INDEX "lb_listeners_project" ON "lb_listeners" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "lb_listeners_pool" ON "lb_listeners" USING btree ("default_pool_id");
CREATE UNIQUE INDEX "lb_listeners_port" ON "lb_listeners" USING btree ("load_balancer_id","protocol_port",("protocol" = 'UDP'));
CREATE UNIQUE INDEX "lb_members_endpoint" ON "lb_members" USING btree ("pool_id","address","protocol_port");
CREATE INDEX "lb_pools_project" ON "lb_pools" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "lb_pools_load_balancer" ON "lb_pools" USING btree ("load_balancer_id");
CREATE INDEX "load_balancers_project" ON "load_balancers" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "load_balancers_network" ON "load_balancers" USING btree ("vip_network_id");
CREATE INDEX "load_balancers_subnet" ON "load_balancers" USING btree ("vip_subnet_id");
CREATE UNIQUE INDEX "load_balancers_vip" ON "load_balancers" USING btree ("region_id","vip_address");
CREATE UNIQUE INDEX "load_balancers_vip_v6" ON "load_balancers" USING btree ("region_id","vip_address_v6");
CREATE INDEX "load_balancers_unconverged" ON "load_balancers" USING btree ("region_id") WHERE "load_balancers"."observed_generation" < "load_balancers"."generation";
CREATE INDEX "lb_listener_traffic_minute" ON "lb_listener_traffic" USING btree ("minute");
CREATE INDEX "load_balancer_traffic_minute" ON "load_balancer_traffic" USING btree ("minute");
CREATE INDEX "networks_project" ON "networks" USING btree ("project_id","region_id","created_at","id");
CREATE UNIQUE INDEX "networks_default" ON "networks" USING btree ("project_id","region_id") WHERE "networks"."is_default";
CREATE INDEX "notification_deliveries_notification" ON "notification_deliveries" USING btree ("notification_id");
CREATE INDEX "notification_deliveries_webhook" ON "notification_deliveries" USING btree ("webhook_id");
CREATE INDEX "notification_deliveries_pending" ON "notification_deliveries" USING btree ("next_attempt_at") WHERE "notification_deliveries"."state" = 'pending';
CREATE INDEX "notifications_client" ON "notifications" USING btree ("client_id","created_at","id");
CREATE UNIQUE INDEX "projects_name" ON "projects" USING btree ("client_id","name") WHERE "projects"."deleted_at" is null;
CREATE UNIQUE INDEX "projects_default" ON "projects" USING btree ("client_id") WHERE "projects"."is_default" and "projects"."deleted_at" is null;
CREATE INDEX "quota_requests_client" ON "quota_requests" USING btree ("client_id","id");
CREATE INDEX "quota_requests_open" ON "quota_requests" USING btree ("client_id") WHERE "quota_requests"."status" = 'in progress';
CREATE UNIQUE INDEX "registry_artifacts_digest" ON "registry_artifacts" USING btree ("repository_id","digest");
CREATE INDEX "registry_events_seen" ON "registry_events" USING btree ("seen_at");
CREATE UNIQUE INDEX "registry_repositories_name" ON "registry_repositories" USING btree ("registry_id","name");
CREATE UNIQUE INDEX "registry_tags_name" ON "registry_tags" USING btree ("repository_id","name");
CREATE INDEX "registry_tags_artifact" ON "registry_tags" USING btree ("artifact_id");
CREATE UNIQUE INDEX "registries_name" ON "registries" USING btree ("project_id","region_id","name") WHERE "registries"."deleted_at" is null;
CREATE INDEX "registries_client" ON "registries" USING btree ("client_id","region_id");
CREATE INDEX "registries_leaving" ON "registries" USING btree ("region_id") WHERE "registries"."deleted_at" is not null;
CREATE INDEX "registry_removals_registry" ON "registry_removals" USING btree ("registry_id");
CREATE UNIQUE INDEX "registry_users_name" ON "registry_users" USING btree ("registry_id","name");
CREATE INDEX "registry_users_login" ON "registry_users" USING btree ("name","secret_mac");
CREATE INDEX "secrets_project" ON "secrets" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "sessions_token" ON "sessions" USING btree ("token_id","last_used_at");
CREATE INDEX "snapshots_project" ON "snapshots" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "snapshots_client" ON "snapshots" USING btree ("client_id","region_id");
CREATE INDEX "snapshots_volume" ON "snapshots" USING btree ("volume_id","created_at","id");
CREATE INDEX "snapshots_policy" ON "snapshots" USING btree ("lifecycle_policy_id");
CREATE UNIQUE INDEX "snapshots_run" ON "snapshots" USING btree ("schedule_id","volume_id","scheduled_at");
CREATE INDEX "snapshots_error_deleting" ON "snapshots" USING btree ("region_id") WHERE "snapshots"."status" = 'error_deleting';
CREATE INDEX "snapshots_unconverged" ON "snapshots" USING btree ("region_id") WHERE "snapshots"."observed_generation" < "snapshots"."generation";
CREATE INDEX "subnets_project" ON "subnets" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "subnets_network" ON "subnets" USING btree ("network_id","created_at");
CREATE INDEX "tokens_client" ON "tokens" USING btree ("client_id") WHERE "tokens"."revoked_at" is null and "tokens"."identity" is null;
CREATE INDEX "tokens_client_id" ON "tokens" USING btree ("client_id","id");
CREATE INDEX "tokens_identity" ON "tokens" USING btree ("identity") WHERE "tokens"."identity" is not null;
CREATE INDEX "user_action_deliveries_pending" ON "user_action_deliveries" USING btree ("subscription_id","next_attempt_at","entry_id") WHERE "user_action_deliveries"."state" = 'pending';
CREATE INDEX "volumes_project" ON "volumes" USING btree ("project_id","region_id","created_at","id");
CREATE INDEX "volumes_client" ON "volumes" USING btree ("client_id","region_id");
CREATE INDEX "volumes_source_snapshot" ON "volumes" USING btree ("source_snapshot_id");
CREATE INDEX "volumes_unconverged" ON "volumes" USING btree ("region_id") WHERE "volumes"."observed_generation" < "volumes"."generation";
CREATE INDEX "webhooks_client" ON "webhooks" USING btree ("client_id","created_at","id");
CREATE INDEX "jobs_waiting" ON "jobs" USING btree ("queue","priority","run_at") WHERE "jobs"."locked_by" is null;
CREATE INDEX "jobs_locked" ON "jobs" USING btree ("locked_by") WHERE "jobs"."locked_by" is not null;
CREATE INDEX "tasks_client_created" ON "tasks" USING btree ("client_id","created_on","id");
CREATE INDEX "tasks_resource" ON "tasks" USING btree ("resource_id","created_on");
CREATE INDEX "tasks_active" ON "tasks" USING btree ("resource_id") WHERE "tasks"."state" in ('NEW', 'RUNNING');
