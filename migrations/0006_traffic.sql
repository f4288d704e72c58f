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
--> statement-breakpoint
ALTER TABLE "lb_listener_counters" ADD COLUMN "seen_requests" bigint;--> statement-breakpoint
ALTER TABLE "lb_listener_counters" ADD COLUMN "seen_server_errors" bigint;--> statement-breakpoint
ALTER TABLE "load_balancer_traffic" ADD COLUMN "requests" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "load_balancer_traffic" ADD COLUMN "connections" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "load_balancer_traffic" ADD COLUMN "open_connections" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "load_balancer_traffic" ADD COLUMN "request_errors" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "load_balancer_traffic" ADD COLUMN "server_errors" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "lb_listener_traffic" ADD CONSTRAINT "lb_listener_traffic_listener_id_lb_listeners_id_fk" FOREIGN KEY ("listener_id") REFERENCES "public"."lb_listeners"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "lb_listener_traffic_minute" ON "lb_listener_traffic" USING btree ("minute");