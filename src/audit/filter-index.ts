/**
 * The index of the filters by table and by row. A migration creates it while the audit log is small; on a large one a
 * worker builds it here, without blocking changes. Until then, and while it is built, these filters scan the log.
 */
import type { Db } from '../platform/db.ts';
import { withoutTimeLimits } from '../platform/with-client.ts';

const name = 'audit_entries_keys';
/** Advisory lock: one process builds. */
const building = 0x636c6f75_6b65;

/** Creates the index if it is missing, or if a build was interrupted. Takes minutes for millions of entries. */
export async function ensureFilterIndex(db: Db): Promise<void> {
  const client = await db.$client.connect();
  let builds = false;
  try {
    const { rows } = await client.query<{ valid: boolean }>(
      'select indisvalid as valid from pg_index where indexrelid = to_regclass($1)',
      [name],
    );
    if (rows[0]?.valid) return;
    const lock = await client.query<{ got: boolean }>('select pg_try_advisory_lock($1) as got', [building]);
    builds = lock.rows[0]!.got;
    if (!builds) return;
    // It waits for transactions that read the log, such as that of a backup.
    await client.query(`set lock_timeout = 0; ${withoutTimeLimits}`);
    await client.query(`drop index concurrently if exists ${name}`);
    await client.query(`create index concurrently ${name} on audit_entries using gin (cloudyard_audit_keys(changes))`);
    // Until then PostgreSQL takes each table for a rare one, and reads all its entries for each page.
    await client.query('analyze audit_entries');
  } finally {
    // The lock and the setting end with the connection.
    client.release(builds);
  }
}
