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
--> statement-breakpoint
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
--> statement-breakpoint
CREATE TABLE "user_action_deliveries" (
	"entry_id" bigint NOT NULL,
	"subscription_id" integer NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"next_attempt_at" timestamp (6) with time zone NOT NULL,
	CONSTRAINT "user_action_deliveries_entry_id_subscription_id_pk" PRIMARY KEY("entry_id","subscription_id")
);
--> statement-breakpoint
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
--> statement-breakpoint
ALTER TABLE "lifecycle_policies" ADD COLUMN "missed_reported_at" timestamp (6) with time zone;--> statement-breakpoint
ALTER TABLE "lifecycle_policy_missed_runs" ADD CONSTRAINT "lifecycle_policy_missed_runs_policy_id_lifecycle_policies_id_fk" FOREIGN KEY ("policy_id") REFERENCES "public"."lifecycle_policies"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "quota_requests" ADD CONSTRAINT "quota_requests_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_action_deliveries" ADD CONSTRAINT "user_action_deliveries_entry_id_audit_entries_id_fk" FOREIGN KEY ("entry_id") REFERENCES "public"."audit_entries"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_action_deliveries" ADD CONSTRAINT "user_action_deliveries_subscription_id_user_action_subscriptions_id_fk" FOREIGN KEY ("subscription_id") REFERENCES "public"."user_action_subscriptions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "user_action_subscriptions" ADD CONSTRAINT "user_action_subscriptions_client_id_clients_id_fk" FOREIGN KEY ("client_id") REFERENCES "public"."clients"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "lifecycle_policy_missed_runs_reported" ON "lifecycle_policy_missed_runs" USING btree ("reported_at");--> statement-breakpoint
CREATE INDEX "lifecycle_policy_missed_runs_open" ON "lifecycle_policy_missed_runs" USING btree ("policy_id") WHERE "lifecycle_policy_missed_runs"."reported_at" is null;--> statement-breakpoint
CREATE INDEX "quota_requests_client" ON "quota_requests" USING btree ("client_id","id");--> statement-breakpoint
CREATE INDEX "quota_requests_open" ON "quota_requests" USING btree ("client_id") WHERE "quota_requests"."status" = 'in progress';--> statement-breakpoint
CREATE INDEX "user_action_deliveries_pending" ON "user_action_deliveries" USING btree ("subscription_id","next_attempt_at","entry_id") WHERE "user_action_deliveries"."state" = 'pending';--> statement-breakpoint
CREATE FUNCTION cloudyard_audit_keys(changes jsonb) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  -- Hashes of the tables and of the ids of changes: small, and a row that only shares a hash is filtered out by the query.
  SELECT array(
    SELECT hashtextextended(key, 0) FROM jsonb_array_elements(changes) AS change,
      LATERAL (VALUES (change ->> 'table'), ('/' || (change ->> 'id'))) AS keys (key)
    WHERE key IS NOT NULL)
$$;--> statement-breakpoint
-- A large index would block all changes while it is built: then a worker builds it concurrently (src/audit/filter-index.ts).
DO $$ BEGIN
  IF pg_relation_size('audit_entries') < 67108864 THEN
    CREATE INDEX "audit_entries_keys" ON "audit_entries" USING gin (cloudyard_audit_keys("changes"));
  END IF;
END $$;
