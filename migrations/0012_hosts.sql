CREATE TABLE "host_observations" (
	"region_id" integer NOT NULL,
	"host" text NOT NULL,
	"kind" text NOT NULL,
	"id" text NOT NULL,
	"revision" bigint NOT NULL,
	"error" json,
	CONSTRAINT "host_observations_region_id_host_kind_id_pk" PRIMARY KEY("region_id","host","kind","id")
);
--> statement-breakpoint
CREATE TABLE "host_readings" (
	"region_id" integer NOT NULL,
	"host" text NOT NULL,
	"kind" text NOT NULL,
	"read_at" timestamp (6) with time zone NOT NULL,
	"readings" text NOT NULL,
	CONSTRAINT "host_readings_region_id_host_kind_pk" PRIMARY KEY("region_id","host","kind")
);
--> statement-breakpoint
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
--> statement-breakpoint
CREATE TABLE "published_states" (
	"region_id" integer NOT NULL,
	"kind" text NOT NULL,
	"id" text NOT NULL,
	"revision" bigint NOT NULL,
	"state" "bytea",
	CONSTRAINT "published_states_region_id_kind_id_pk" PRIMARY KEY("region_id","kind","id")
);
--> statement-breakpoint
ALTER TABLE "host_observations" ADD CONSTRAINT "host_observations_region_id_host_hosts_region_id_name_fk" FOREIGN KEY ("region_id","host") REFERENCES "public"."hosts"("region_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "host_readings" ADD CONSTRAINT "host_readings_region_id_host_hosts_region_id_name_fk" FOREIGN KEY ("region_id","host") REFERENCES "public"."hosts"("region_id","name") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "published_states_revision" ON "published_states" USING btree ("region_id","revision");