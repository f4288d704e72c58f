/** What every service needs: its engines, and the checks that turn a missing, locked or used row into an error. */
import { isDeepStrictEqual } from 'node:util';
import type { Actor, RequestContext, Scope } from '../authz/actor.ts';
import {
  ClientError,
  type FieldError,
  inUse,
  invalidInput,
  nameTaken,
  notFound,
  requireNoErrors,
  resourceLocked,
  type Uses,
} from '../errors/catalogue.ts';
import type { Idempotency } from '../idempotency/idempotency.ts';
import { type Clock, instantOf, wholeSecond } from '../platform/clock.ts';
import { violatedConstraint } from '../platform/db-errors.ts';
import type { Db, Tx } from '../platform/db.ts';
import { pageOfItems, type PageOfItems } from '../platform/large-rows.ts';
import type { Quota, QuotaFigure } from '../quota/quota.ts';
import { lengthOfTags, mergeTags, type TagChange, type Tags, type UpdateTags } from '../tags/tags.ts';
import type { NewTask, Tasks } from '../tasks/tasks.ts';
import type { Found, PageQuery } from './read-kit.ts';

export { requireProject } from './store-kit.ts';

/** What every service of a resource is made of. */
export interface ServiceDeps {
  db: Db;
  clock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
}

/** The response of an operation that clients follow by its tasks. Empty when there is nothing to change. */
export interface TaskIds {
  tasks: string[];
}

/** A page of a list as a response. */
export type Collection<Item> = { count: number; results: Item[] };

interface ReconciledRow {
  id: string;
  projectId: number;
  generation: number;
}

type Update<Row> = (tx: Tx, id: string, changes: Partial<Row>) => Promise<void>;

export type ChangeUnderLock<Row, Id = string> = <T>(
  context: RequestContext,
  scope: Scope,
  id: Id,
  write: (tx: Tx, row: Row) => Promise<T>,
) => Promise<T>;

/**
 * Returns a function that runs a change in a transaction, under the lock of its row.
 * @throws ClientError 404; 409 when a task locks the resource
 */
export function changesUnderLock<Row extends { lockedBy?: string | null; id: Id }, Id extends string | number>(
  { db, idempotency }: Pick<ServiceDeps, 'db' | 'idempotency'>,
  what: string,
  lock: (tx: Tx, scope: Scope, id: Id) => Promise<Row | null>,
  transaction = idempotency.auditedTransaction,
): ChangeUnderLock<Row, Id> {
  return (context, scope, id, write) =>
    transaction(db, context, async (tx) => {
      const row = requireFound(await lock(tx, scope, id), what, id);
      requireUnlocked(row.lockedBy ?? null, what, `${id}`);
      return write(tx, row);
    });
}

/** Returns a function that writes changes which the host must follow, and the task that waits for them. */
export function changesOnHost<Row extends ReconciledRow>(
  tasks: Tasks,
  keyOf: (row: Row) => NewTask['key'],
  update: Update<Row>,
) {
  return async (tx: Tx, context: RequestContext, row: Row, type: string, changes: Partial<Row>): Promise<TaskIds> => {
    const { id, projectId } = row;
    const generation = row.generation + 1;
    await update(tx, id, { ...changes, generation });
    return { tasks: [await tasks.enqueue(tx, context, { type, key: keyOf(row), projectId, generation })] };
  };
}

/** Returns an update that also sets the time of the change. */
export function updatesAt<Row extends { updatedAt: Date }>(clock: Clock, update: Update<Row>): Update<Row> {
  return (tx, id, changes) => update(tx, id, { ...changes, updatedAt: clock.now() });
}

/**
 * Returns a function that writes the columns that differ from the row's, for changes that the host does not apply. It returns
 * whether any column differed.
 */
export function changesInRow<Row extends { id: string }>(update: Update<Row>) {
  return async (tx: Tx, row: Row, values: Partial<Row>): Promise<boolean> => {
    const changed = differences(row, values);
    if (isEmpty(changed)) return false;
    await update(tx, row.id, changed);
    return true;
  };
}

type Tagged = { tags: Tags };

/** The operations on the tags of a resource whose host does not have them. */
export const tagsInRow = <Row extends Tagged>(
  view: (scope: Scope, id: string) => Promise<Tagged>,
  change: ChangeUnderLock<Row>,
  changeInRow: (tx: Tx, row: Row, tags: Tagged) => Promise<unknown>,
) => ({
  tagsOf: async (scope: Scope, id: string): Promise<Tags> => (await view(scope, id)).tags,

  changeTags: (context: RequestContext, scope: Scope, id: string, tagChange: TagChange): Promise<void> =>
    change(context, scope, id, async (tx, row) => {
      await changeInRow(tx, row, { tags: tagChange(row.tags) });
    }),
});

/** @throws ClientError 404 */
export function requireFound<Row>(row: Row | null | undefined, what: string, id: string | number): Row {
  if (row === null || row === undefined) throw notFound(what, id);
  return row;
}

/** For the client that a body names (`OwnClient`). @throws ClientError 400 */
export function requireOwnClient(actor: Actor, clientId: number | null | undefined): void {
  if (clientId === null || clientId === undefined || clientId === actor.clientId) return;
  throw invalidInput([{ path: 'client_id', message: `must be the client of the token (${actor.clientId})` }]);
}

/** @throws ClientError 409 when a task locks the resource */
export function requireUnlocked(taskId: string | null, what: string, id: string): void {
  if (taskId !== null) throw resourceLocked(what, id, taskId);
}

/** The users of a resource, of one kind. */
export type FindUses<Id> = (tx: Tx, id: Id) => Promise<Uses[]>;

/** @throws ClientError 409 that names the users of the resource */
export async function requireUnused<Id extends string | number>(
  tx: Tx,
  what: string,
  id: Id,
  findUses: FindUses<Id>[],
): Promise<void> {
  const uses: Uses[] = [];
  for (const find of findUses) uses.push(...(await find(tx, id)));
  if (uses.length > 0) throw inUse(what, id, uses);
}

/**
 * Runs a write. The unique index decides, so that of two concurrent requests one fails.
 * @throws ClientError 409 NameTaken when the write breaks the constraint
 */
export async function orNameTaken<T>(write: Promise<T>, constraint: string, message: string): Promise<T> {
  return write.catch((error: unknown) => {
    throw violatedConstraint(error) === constraint ? nameTaken(message) : error;
  });
}

/** The result of a check. @throws ClientError 400 with these errors and those of the check, before any other refusal of it */
export async function withErrors<T>(errors: FieldError[], check: Promise<T>): Promise<T> {
  const result = await check.catch((error: unknown) => {
    if (!(error instanceof ClientError) || errors.length === 0) throw error;
    throw invalidInput([...errors, ...(error.code === 'InvalidInput' ? error.errors : [])]);
  });
  requireNoErrors(errors);
  return result;
}

/**
 * The columns whose values differ from the row's; an undefined value keeps the column. An update that changes nothing,
 * tags included, writes nothing.
 */
export function changedColumns<Row extends object, Values extends { [Field in keyof Values]: Allowed<Row, Field> }>(
  row: Row,
  values: Values,
): Partial<Row> {
  return differences(row, values) as Partial<Row>;
}
/** A field that is not a column is a type error. */
type Allowed<Row, Field> = Field extends keyof Row ? Row[Field] | undefined : never;

function differences(row: object, values: object): object {
  const changed = Object.entries(values).filter(
    ([field, value]) => value !== undefined && !isDeepStrictEqual(value, (row as Record<string, unknown>)[field]),
  );
  return Object.fromEntries(changed);
}

export function isEmpty(changes: object): boolean {
  return Object.keys(changes).length === 0;
}

/** The tags after a merge patch that a request may contain. @throws ClientError 400 with its errors and those of other fields */
export function patchedTags(current: Tags, patch: UpdateTags | undefined, others: FieldError[] = []): Tags {
  if (patch !== undefined) return mergeTags(current, patch, 'tags', others);
  requireNoErrors(others);
  return current;
}

/** An update may repeat the current size, as clients do that send every field; to change it is an operation of its own. */
export function sizeErrors(current: number, given: number | undefined): FieldError[] {
  if (given === undefined || given === current) return [];
  return [
    { path: 'size', message: `must equal the current size (${current} GiB); use the operation extend to change it` },
  ];
}

/** @throws ClientError 400 when an extension does not extend */
export function requireGrowth(current: number, size: number, what: string): void {
  if (size > current) return;
  const message = `must be greater than the current size (${current} GiB); a ${what} cannot shrink`;
  throw invalidInput([{ path: 'size', message }]);
}

/** Figures of quotas as fields: `volume_count_limit`, `volume_count_usage`, and for `check_limits` `volume_count_requested`. */
export function toQuotaFields(figures: Omit<QuotaFigure, 'requested'>[]): Record<string, number> {
  return Object.fromEntries(
    figures.flatMap(({ kind, ...rest }) => Object.entries(rest).map(([name, figure]) => [`${kind}_${name}`, figure])),
  );
}

/** `rest`: further arguments of `toItem`. */
export function toCollection<Row, Item, Rest extends unknown[]>(
  { count, rows }: Found<Row>,
  toItem: (row: Row, ...rest: Rest) => Item,
  ...rest: Rest
): Collection<Item> {
  return { count, results: rows.map((row) => toItem(row, ...rest)) };
}

/** Responses may contain tags three times: `tags`, `metadata` and `metadata_detailed`. */
const copiesOfTags = 3;

/** The same for rows with tags, of which a page may have many megabytes. */
export function toTaggedPage<Row extends { tags: Tags }, Item, Rest extends unknown[]>(
  found: Found<Row>,
  toItem: (row: Row, ...rest: Rest) => Item,
  ...rest: Rest
): PageOfItems<Item> {
  return pageOfItems(
    found,
    ({ tags }) => lengthOfTags(tags) * copiesOfTags,
    (row) => toItem(row, ...rest),
  );
}

/** A page of a list that is in memory as a whole. */
export function pageOf<Item>(all: Item[], { limit, offset = 0 }: PageQuery, defaultLimit = 1000): Collection<Item> {
  return { count: all.length, results: all.slice(offset, offset + (limit ?? defaultLimit)) };
}

/** `what`: why an operation concerns all projects. @throws ClientError 403 for a token that is limited to some of them */
export function requireAllProjects({ projectIds }: Actor, what: string): void {
  if (projectIds) throw new ClientError('Forbidden', `${what}, but the token is limited to some of them`);
}

/** The instant in a valid field that may be omitted. */
export function readInstant(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : instantOf(text)!;
}

/**
 * The end of a range of times that responses show in whole seconds: all of its second, so that the shown time of an entry
 * selects the entry.
 */
export function readEnd(text: string | undefined): Date | undefined {
  const date = readInstant(text);
  return date && new Date(wholeSecond(date).getTime() + 999);
}

/** The expiry that a request sets, null for none, and the errors in it. */
export function readExpiry(
  path: string,
  text: string | null | undefined,
  now: Date,
): { date: Date | null; errors: FieldError[] } {
  if (text === null || text === undefined) return { date: null, errors: [] };
  const date = instantOf(text)!;
  return { date, errors: date > now ? [] : [{ path, message: 'is in the past' }] };
}
