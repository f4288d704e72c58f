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
