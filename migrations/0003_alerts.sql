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
	"last_message" jsonb,
	"last_sending" timestamp (6) with time zone
);
--> statement-breakpoint
ALTER TABLE "quota_counters" ADD COLUMN "alerted_at" timestamp (6) with time zone;