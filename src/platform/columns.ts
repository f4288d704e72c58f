/** Column types, and columns that several tables share. */
import { type AnyPgColumn, bigint, customType, integer, text, timestamp, uuid } from 'drizzle-orm/pg-core';

/** A point in time, to the microsecond. */
export const instant = (name: string) => timestamp(name, { withTimezone: true, precision: 6 });

/** Bytes. Only for secrets, encrypted or hashed: the audit log redacts such columns (audit/triggers.ts). */
export const bytes = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

/** The id of the row that a row is part of, and removed with. */
export const parentUuid = (name: string, parent: () => AnyPgColumn) =>
  uuid(name).notNull().references(parent, { onDelete: 'cascade' });

/** The id of a row that cannot be removed while another row has it. */
export const referencedUuid = (name: string, row: () => AnyPgColumn) => uuid(name).notNull().references(row);

/** A resource of a project in a region, and the client that its quota counts for. */
export const owned = {
  clientId: integer('client_id').notNull(),
  projectId: integer('project_id').notNull(),
  regionId: integer('region_id').notNull(),
  name: text('name').notNull(),
};

/** A resource that a reconciler brings to a host. It also has `deletedAt`; its row is removed when the deletion was observed. */
export const reconciled = {
  creatorTaskId: uuid('creator_task_id').notNull(),
  /** Increases with every change that the host must follow. */
  generation: bigint('generation', { mode: 'number' }).notNull(),
  /** The last generation that the host was observed to have, or that failed permanently. */
  observedGeneration: bigint('observed_generation', { mode: 'number' }).notNull(),
  createdAt: instant('created_at').notNull(),
};
