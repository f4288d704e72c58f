ALTER TABLE "file_shares" ALTER COLUMN "root_squash" DROP NOT NULL;--> statement-breakpoint
-- Responses have not shown it so far, and clients that never sent it take a new field for a change.
UPDATE "file_shares" SET "root_squash" = NULL WHERE "type_name" = 'standard' AND NOT "root_squash";--> statement-breakpoint
UPDATE "lb_listeners" SET "connection_limit" = 100000 WHERE "connection_limit" = -1;--> statement-breakpoint
-- These settings are for UDP pools now.
UPDATE "lb_pools" SET "session_persistence" = "session_persistence" || '{"persistence_timeout": null, "persistence_granularity": null}' WHERE "protocol" <> 'UDP' AND "session_persistence" IS NOT NULL;
