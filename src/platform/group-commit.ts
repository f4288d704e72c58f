/**
 * Commits the deferred writes of concurrent transactions together: one statement and one flush for up to 16 of them. While a
 * statement of a group is on its way, later transactions of the group wait for the next one, so nothing waits at rest.
 *
 * Use it for transactions of workers, which write many rows of one kind in a burst. Their writes must lock rows in the
 * order of `id`, or rows that all transactions of the group have in common: then groups cannot deadlock.
 *
 * Failure modes: if the joint statement fails, each transaction runs by itself, so the fault of one affects no other. A row
 * that another transaction holds delays the whole group.
 */
import { collectWrites, isContended, isUnavailable, sendAlone, transaction } from './db.ts';
import type { Db, Tx } from './db.ts';
import type { Write } from './deferred-writes.ts';

/** The numbers of transactions in a statement. Few, because each is a prepared statement of its own. */
const sizes = [16, 8, 4, 2, 1];

interface Member {
  id: string;
  writes: Write[];
  settle: PromiseWithResolvers<void>;
}

interface Group {
  waiting: Member[];
  isSending: boolean;
}

const groups = new WeakMap<Db, Map<string, Group>>();

/**
 * Runs `work`, which only defers writes, in one transaction with others of the same group. `id` differs between concurrent
 * calls.
 */
export async function groupedTransaction(
  db: Db,
  { group, id }: { group: string; id: string },
  work: (tx: Tx) => Promise<void>,
): Promise<void> {
  const { pending, committed } = await collectWrites(work);
  const member = { id, writes: pending, settle: Promise.withResolvers<void>() };
  const key = [group, ...pending.map(({ definition }) => definition.name)].join(' ');
  void join(db, key, member);
  try {
    await member.settle.promise;
  } catch (error) {
    if (isUnavailable(error) && !isContended(error)) throw error;
    return transaction(db, work);
  }
  for (const call of committed) call();
}

async function join(db: Db, key: string, member: Member): Promise<void> {
  let ofDb = groups.get(db);
  if (!ofDb) groups.set(db, (ofDb = new Map()));
  let group = ofDb.get(key);
  if (!group) ofDb.set(key, (group = { waiting: [], isSending: false }));
  group.waiting.push(member);
  if (group.isSending) return;
  group.isSending = true;
  while (group.waiting.length > 0) {
    const size = sizes.find((one) => one <= group.waiting.length)!;
    await send(db, group.waiting.splice(0, size));
  }
  ofDb.delete(key);
}

async function send(db: Db, members: Member[]): Promise<void> {
  const ordered = members.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  try {
    await sendAlone(
      db.$client,
      ordered.flatMap(({ writes }) => writes),
    );
    for (const { settle } of members) settle.resolve();
  } catch (error) {
    for (const { settle } of members) settle.reject(error);
  }
}
