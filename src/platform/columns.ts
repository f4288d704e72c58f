/** Column types that all tables share. */
import { customType, timestamp } from 'drizzle-orm/pg-core';

/** A point in time, to the microsecond. */
export const instant = (name: string) => timestamp(name, { withTimezone: true, precision: 6 });

/** Bytes. Only for secrets, encrypted or hashed: the audit log redacts such columns (audit/triggers.ts). */
export const bytes = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
