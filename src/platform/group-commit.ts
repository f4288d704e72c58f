/**
 * Commits the deferred writes of concurrent transactions together: one statement and one flush for up to 16 of them. While a
 * statement of a group is on its way, later transactions of the group wait for the next one, so nothing waits at rest.
 *
 * Use it for transactions that write many rows of one kind in a burst: those of workers, and the creates of a project. Their
 * writes must lock rows in the order of `id`, or rows that all transactions of the group have in common: then groups cannot
 * deadlock.
 *
 * Failure modes: if the joint statement fails, each transaction runs by itself, so the error of one affects no other. A row
 * that another transaction holds delays the whole group. After a `lock_timeout`, transactions that have their rows in common
 * fail, and so do those that wait for the next statement: they would wait for the same lock again.
 */
import type pg from 'pg';
import { collectWrites, type Db, type Guard, sendAlone, transaction, type Tx } from './db.ts';
import { exceededTimeLimit, isContended, isUnavailable } from './db-errors.ts';
import type { Write } from './deferred-writes.ts';

/** The numbers of transactions in a statement. Few, because each is a prepared statement of its own. */
const sizes = [16, 8, 4, 2, 1];

interface Member {
  /** Empty: it locks only rows that all members have in common, or new ones. */
  id: string;
  writes: Write[];
  guard?: Guard | undefined;
  settle: PromiseWithResolvers<void>;
}

interface Group {
  waiting: Member[];
  isSending: boolean;
}

const groups = new WeakMap<pg.Pool, Map<string, Group>>();

/** `id` orders the transactions of a statement; absent: they lock only rows that all have in common, or new ones. */
interface Place {
  group: string;
  id?: string;
}

/**
 * Runs `work`, which only defers writes, in one transaction with others of the same group. `id` differs between concurrent
 * calls.
 */
export async function groupedTransaction(
  db: Db,
  place: Place & { id: string },
  work: (tx: Tx) => Promise<void>,
): Promise<void> {
  const { pending, committed } = await collectWrites(work);
  if (!(await joined(db.$client, place, pending))) return transaction(db, work);
  for (const call of committed) call();
}

/** Sends all writes of a transaction, for `Frame.send`: with those of concurrent calls that have the same functions. */
export async function sendGrouped(
  pool: pg.Pool,
  place: Place,
  writes: Write[],
  setting?: string,
  guard?: Guard,
): Promise<void> {
  if (!(await joined(pool, place, writes, setting, guard))) await sendAlone(pool, writes, setting, guard);
}

/** Returns whether the writes are committed; if not, another attempt without the group may succeed. */
async function joined(pool: pg.Pool, place: Place, writes: Write[], setting?: string, guard?: Guard): Promise<boolean> {
  const member = { id: place.id ?? '', writes, guard, settle: Promise.withResolvers<void>() };
  const key = [place.group, setting, ...writes.map(({ definition }) => definition.name)].join(' ');
  void join(pool, key, member, setting);
  try {
    await member.settle.promise;
    return true;
  } catch (error) {
    if ((isUnavailable(error) && !isContended(error)) || isSharedLock(error, member)) throw error;
    return false;
  }
}

/** Whether a lock that all members of the group need was not available in time. */
const isSharedLock = (error: unknown, { id }: Member): boolean =>
  id === '' && exceededTimeLimit(error) === 'lock_timeout';

async function join(pool: pg.Pool, key: string, member: Member, setting: string | undefined): Promise<void> {
  let ofPool = groups.get(pool);
  if (!ofPool) groups.set(pool, (ofPool = new Map()));
  let group = ofPool.get(key);
  if (!group) ofPool.set(key, (group = { waiting: [], isSending: false }));
  group.waiting.push(member);
  if (group.isSending) return;
  group.isSending = true;
  while (group.waiting.length > 0) {
    const size = sizes.find((one) => one <= group.waiting.length)!;
    await send(pool, group.waiting.splice(0, size), group.waiting, setting);
  }
  ofPool.delete(key);
}

/** `waiting`: the members that the next statements will send. */
async function send(pool: pg.Pool, all: Member[], waiting: Member[], setting: string | undefined): Promise<void> {
  const members = all.filter(mayCommit);
  if (members.length === 0) return;
  const ordered = members.toSorted((a, b) => (a.id === b.id ? 0 : a.id < b.id ? -1 : 1));
  const writes = ordered.flatMap((member) => member.writes);
  try {
    await sendAlone(pool, writes, setting);
    for (const { settle } of members) settle.resolve();
  } catch (error) {
    const failed = isSharedLock(error, members[0]!) ? [...members, ...waiting.splice(0)] : members;
    for (const { settle } of failed) settle.reject(error);
  }
}

/** False, and the transaction fails, if its guard throws. */
function mayCommit({ guard, settle }: Member): boolean {
  try {
    guard?.(true);
    return true;
  } catch (error) {
    settle.reject(error);
    return false;
  }
}
