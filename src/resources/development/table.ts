import { integer, pgTable, text } from 'drizzle-orm/pg-core';
import type { FaultMode, FaultyOperation } from './schema.ts';

/** Faults to inject, in development mode. */
export const developmentFaults = pgTable('development_faults', {
  id: integer('id').primaryKey().generatedAlwaysAsIdentity(),
  resource: text('resource').notNull(),
  operation: text('operation').notNull().$type<FaultyOperation>(),
  mode: text('mode').notNull().$type<FaultMode>(),
  count: integer('count').notNull(),
  /** Remaining occurrences. */
  remaining: integer('remaining').notNull(),
  seconds: integer('seconds'),
  message: text('message'),
});
