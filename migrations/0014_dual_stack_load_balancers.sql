ALTER TABLE "load_balancers" ADD COLUMN "vip_address_v6" text;--> statement-breakpoint
-- contract: the column is null in rows of the previous release, and nulls are distinct
CREATE UNIQUE INDEX "load_balancers_vip_v6" ON "load_balancers" USING btree ("region_id","vip_address_v6");