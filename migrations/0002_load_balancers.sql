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
--> statement-breakpoint
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
--> statement-breakpoint
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
--> statement-breakpoint
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
--> statement-breakpoint
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
--> statement-breakpoint
CREATE TABLE "load_balancer_traffic" (
	"load_balancer_id" uuid NOT NULL,
	"minute" timestamp with time zone NOT NULL,
	"bytes_in" bigint NOT NULL,
	"bytes_out" bigint NOT NULL,
	CONSTRAINT "load_balancer_traffic_load_balancer_id_minute_pk" PRIMARY KEY("load_balancer_id","minute")
);
--> statement-breakpoint
ALTER TABLE "lb_members" ADD CONSTRAINT "lb_members_pool_id_lb_pools_id_fk" FOREIGN KEY ("pool_id") REFERENCES "public"."lb_pools"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lb_pools" ADD CONSTRAINT "lb_pools_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lb_listeners" ADD CONSTRAINT "lb_listeners_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lb_listeners" ADD CONSTRAINT "lb_listeners_default_pool_id_lb_pools_id_fk" FOREIGN KEY ("default_pool_id") REFERENCES "public"."lb_pools"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "load_balancers" ADD CONSTRAINT "load_balancers_vip_network_id_networks_id_fk" FOREIGN KEY ("vip_network_id") REFERENCES "public"."networks"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "load_balancers" ADD CONSTRAINT "load_balancers_vip_subnet_id_subnets_id_fk" FOREIGN KEY ("vip_subnet_id") REFERENCES "public"."subnets"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lb_listener_counters" ADD CONSTRAINT "lb_listener_counters_listener_id_lb_listeners_id_fk" FOREIGN KEY ("listener_id") REFERENCES "public"."lb_listeners"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "load_balancer_traffic" ADD CONSTRAINT "load_balancer_traffic_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "lb_members_endpoint" ON "lb_members" USING btree ("pool_id","address","protocol_port");--> statement-breakpoint
CREATE INDEX "lb_pools_project" ON "lb_pools" USING btree ("project_id","region_id","created_at","id");--> statement-breakpoint
CREATE INDEX "lb_pools_load_balancer" ON "lb_pools" USING btree ("load_balancer_id");--> statement-breakpoint
CREATE INDEX "lb_listeners_project" ON "lb_listeners" USING btree ("project_id","region_id","created_at","id");--> statement-breakpoint
CREATE INDEX "lb_listeners_pool" ON "lb_listeners" USING btree ("default_pool_id");--> statement-breakpoint
CREATE UNIQUE INDEX "lb_listeners_port" ON "lb_listeners" USING btree ("load_balancer_id","protocol_port",("protocol" = 'UDP'));--> statement-breakpoint
CREATE INDEX "load_balancers_project" ON "load_balancers" USING btree ("project_id","region_id","created_at","id");--> statement-breakpoint
CREATE INDEX "load_balancers_network" ON "load_balancers" USING btree ("vip_network_id");--> statement-breakpoint
CREATE INDEX "load_balancers_subnet" ON "load_balancers" USING btree ("vip_subnet_id");--> statement-breakpoint
CREATE UNIQUE INDEX "load_balancers_vip" ON "load_balancers" USING btree ("region_id","vip_address");--> statement-breakpoint
CREATE INDEX "load_balancers_unconverged" ON "load_balancers" USING btree ("region_id") WHERE "load_balancers"."observed_generation" < "load_balancers"."generation";--> statement-breakpoint
CREATE INDEX "load_balancer_traffic_minute" ON "load_balancer_traffic" USING btree ("minute");