CREATE TABLE "file_share_usage" (
	"file_share_id" uuid PRIMARY KEY NOT NULL,
	"used_bytes" bigint NOT NULL,
	"total_bytes" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "file_share_usage" ADD CONSTRAINT "file_share_usage_file_share_id_file_shares_id_fk" FOREIGN KEY ("file_share_id") REFERENCES "public"."file_shares"("id") ON DELETE cascade ON UPDATE no action;