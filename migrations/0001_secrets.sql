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
--> statement-breakpoint
ALTER TABLE "secrets" ADD CONSTRAINT "secrets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "secrets_project" ON "secrets" USING btree ("project_id","region_id","created_at","id");