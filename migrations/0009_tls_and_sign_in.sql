CREATE TABLE "acme_certificates" (
	"id" integer PRIMARY KEY NOT NULL,
	"state" "bytea",
	"version" integer DEFAULT 0 NOT NULL,
	"issuing_until" timestamp (6) with time zone,
	"next_attempt_at" timestamp (6) with time zone,
	"failures" integer DEFAULT 0 NOT NULL,
	"error" text
);
--> statement-breakpoint
CREATE TABLE "acme_challenges" (
	"token" text PRIMARY KEY NOT NULL,
	"response" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "tokens" ADD COLUMN "identity" text;