/** Limits of rows that no quota counts (docs/guides/quotas.md). Without them, a client could fill the database. */
import { getTableName } from 'drizzle-orm';
import { ClientError } from '../errors/catalogue.ts';
import { deferred } from '../platform/db.ts';
import { type TableWithId, typeOfId } from './read-kit.ts';

/** SQLSTATE of an insert beyond a limit. */
const limitReached = 'CY005';

interface LimitedRows {
  /** Their name, in the plural. */
  of: string;
  most: number;
  /** What a client can do when there are as many. */
  advice?: string;
  /** SQL of their number, with the ID of the owner as `$1` and more parameters from `$2` on. */
  count: string;
  /** The SQL types of these. */
  parameters?: string[];
}

/**
 * A check that a transaction makes after the insert, with the ID of the row that owns the new one. The owner stays locked, so
 * concurrent inserts cannot exceed the limit together.
 * @throws ClientError 409, by a later statement
 */
export function limitRows<More extends unknown[] = []>(
  owner: TableWithId,
  { of, most, advice, count, parameters = [] }: LimitedRows,
) {
  const ownerName = getTableName(owner).replaceAll('_', ' ').replace(/s$/, '');
  const message = `a ${ownerName} can have at most ${most} ${of}${advice ? `; ${advice}` : ''}`;
  return deferred<[ownerId: string | number, ...more: More]>(`limit_${of.replaceAll(' ', '_').toLowerCase()}`, {
    parameters: [typeOfId(owner), ...parameters].join(', '),
    body: `perform from ${getTableName(owner)} where id = $1 for no key update;
  if (${count}) > ${most} then
    raise exception using errcode = '${limitReached}', message = 'limit reached', detail = '${message}';
  end if;`,
    errors: { [limitReached]: (detail) => new ClientError('Conflict', detail) },
  });
}
