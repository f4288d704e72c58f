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
--> statement-breakpoint
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
--> statement-breakpoint
ALTER TABLE "lb_l7_policies" ADD CONSTRAINT "lb_l7_policies_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lb_l7_policies" ADD CONSTRAINT "lb_l7_policies_listener_id_lb_listeners_id_fk" FOREIGN KEY ("listener_id") REFERENCES "public"."lb_listeners"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lb_l7_policies" ADD CONSTRAINT "lb_l7_policies_redirect_pool_id_lb_pools_id_fk" FOREIGN KEY ("redirect_pool_id") REFERENCES "public"."lb_pools"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lb_l7_rules" ADD CONSTRAINT "lb_l7_rules_load_balancer_id_load_balancers_id_fk" FOREIGN KEY ("load_balancer_id") REFERENCES "public"."load_balancers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lb_l7_rules" ADD CONSTRAINT "lb_l7_rules_policy_id_lb_l7_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lb_l7_policies"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "lb_l7_policies_project" ON "lb_l7_policies" USING btree ("project_id","region_id","created_at","id");--> statement-breakpoint
CREATE INDEX "lb_l7_policies_load_balancer" ON "lb_l7_policies" USING btree ("load_balancer_id");--> statement-breakpoint
CREATE INDEX "lb_l7_policies_listener" ON "lb_l7_policies" USING btree ("listener_id","position");--> statement-breakpoint
CREATE INDEX "lb_l7_policies_pool" ON "lb_l7_policies" USING btree ("redirect_pool_id");--> statement-breakpoint
CREATE INDEX "lb_l7_rules_load_balancer" ON "lb_l7_rules" USING btree ("load_balancer_id");--> statement-breakpoint
CREATE INDEX "lb_l7_rules_policy" ON "lb_l7_rules" USING btree ("policy_id","created_at","id");