CREATE TABLE "nfs_groups" (
	"region_id" integer NOT NULL,
	"address" text NOT NULL,
	"last_export_id" integer NOT NULL,
	CONSTRAINT "nfs_groups_region_id_address_pk" PRIMARY KEY("region_id","address")
);
--> statement-breakpoint
ALTER TABLE "file_shares" ADD COLUMN "nfs_group" text;--> statement-breakpoint
ALTER TABLE "file_shares" ADD COLUMN "export_id" integer;--> statement-breakpoint
-- contract: both columns are null in rows of the previous release, and nulls are distinct
CREATE UNIQUE INDEX "file_shares_export" ON "file_shares" USING btree ("region_id","nfs_group","export_id");