/** The rules of API keys. A key lives in its row and in the memory of every server (gate.ts). */
import { randomBytes, randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, invalidInput, notFound } from '../../errors/catalogue.ts';
import type { FieldError } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { instantOf, withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { randomSecret, sha256 } from '../../platform/crypto.ts';
import { violatedConstraint } from '../../platform/db.ts';
import type { Db, Tx } from '../../platform/db.ts';
import { readInGroups } from '../../platform/large-rows.ts';
import { refusals } from './gate.ts';
import type { Asked, KeyGate } from './gate.ts';
import type { ApiKey, Container, CreateApiKey, CreatedApiKey, ListApiKeys, UpdateApiKey } from './schema.ts';
import * as store from './store.ts';
import type { ApiKeyRow } from './store.ts';

export interface ApiKeysDeps {
  db: Db;
  clock: Clock;
  idempotency: Idempotency;
  gate: KeyGate;
}

export type ApiKeys = ReturnType<typeof createApiKeys>;

const dayMs = 86_400_000;

export function createApiKeys(deps: ApiKeysDeps) {
  const { db, clock, idempotency, gate } = deps;

  const statusOf = ({ isDisabled, expire, createdAt, keyId }: ApiKeyRow): ApiKey['status'] => {
    const now = clock.now();
    if (isDisabled) return 'disabled';
    if (expire && expire <= now) return 'expired';
    return createdAt > now || !gate.knows(keyId) ? 'pending' : 'active';
  };

  const present = (key: ApiKeyRow): ApiKey => ({
    name: key.name,
    containers: key.containers,
    created_at: withZone(key.createdAt),
    description: key.description,
    expire: withZone(key.expire),
    is_disabled: key.isDisabled,
    source: 'cloud',
    status: statusOf(key),
  });

  /** Runs a change in one transaction, and lets it count here before the request is answered. */
  const auditedTransaction = async <T>(
    context: RequestContext,
    work: (tx: Tx, changed: (row: ApiKeyRow) => void) => Promise<T>,
    options?: { sealed: boolean },
  ): Promise<T> => {
    let changed: ApiKeyRow | undefined;
    const note = (row: ApiKeyRow) => (changed = row);
    const result = await idempotency.auditedTransaction(
      db,
      context,
      (tx) => ((changed = undefined), work(tx, note)),
      options,
    );
    if (changed) gate.apply(changed);
    return result;
  };

  return {
    async create(context: RequestContext, scope: Scope, body: CreateApiKey): Promise<CreatedApiKey> {
      const expire = instantOrNull(body.expire);
      refuse([...faultsOfContainers(body.containers), ...faultsOfExpire(expire, clock.now())]);
      const keyId = randomBytes(8).toString('hex');
      const secret = randomSecret();
      const key = {
        id: randomUUID(),
        projectId: scope.projectId,
        regionId: scope.regionId,
        name: body.name,
        description: body.description ?? '',
        containers: body.containers,
        expire: expire as Date | null,
        isDisabled: body.is_disabled ?? false,
        keyId,
        secretHash: sha256(secret),
        createdAt: clock.now(),
        deletedAt: null,
      };
      const make = async (tx: Tx, changed: (row: ApiKeyRow) => void) => {
        if (!(await store.holdProject(tx, scope.projectId))) throw notFound('project', scope.projectId);
        const row = { ...key, version: await store.nextVersion(tx) };
        await store.insert(tx, row);
        changed(row);
        // With the commit it works here.
        const status: ApiKey['status'] = row.isDisabled ? 'disabled' : 'active';
        return { ...present(row), status, secret: `${keyId}.${secret}` };
      };
      return auditedTransaction(context, make, { sealed: true }).catch((error: unknown) => {
        if (violatedConstraint(error) !== 'api_keys_name') throw error;
        throw new ClientError('NameTaken', `there is an API key ${body.name} already`);
      });
    },

    /** A page by name; the keys come in groups, because a thousand of them may be large. */
    async list(scope: Scope, page: ListApiKeys): Promise<{ count: number; keys: AsyncIterable<ApiKey[]> }> {
      const { count, rows } = await store.list(db, scope, page);
      return { count, keys: readInGroups(rows, (ids) => store.rows(db, ids), present) };
    },

    async get(scope: Scope, name: string): Promise<ApiKey> {
      const key = await store.view(db, scope, name);
      if (!key) throw notFound('API key', name);
      return present(key);
    },

    /** What is absent stays; null clears. What changes nothing writes nothing. */
    async update(context: RequestContext, scope: Scope, name: string, body: UpdateApiKey): Promise<ApiKey> {
      return auditedTransaction(context, async (tx, changed) => {
        const key = await store.lock(tx, scope, name);
        if (!key) throw notFound('API key', name);
        const changes = changesOf(key, body, clock.now());
        if (Object.keys(changes).length === 0) return present(key);
        const row = await write(tx, key, changes);
        changed(row);
        return present(row);
      });
    },

    async delete(context: RequestContext, scope: Scope, name: string): Promise<void> {
      await auditedTransaction(context, async (tx, changed) => {
        const key = await store.lock(tx, scope, name);
        if (!key) throw notFound('API key', name);
        changed(await write(tx, key, { deletedAt: clock.now() }));
      });
    },

    /** Whether a key opens a container, without the reason. No database. */
    opens: (key: string | undefined, asked: Asked): boolean => gate.isLoaded() && gate.refusal(key, asked) === null,

    /** Lets the holder of a key pass to a container. No database. @throws ClientError 401, 403 with the reason; 503 */
    authorize(key: string | undefined, asked: Asked): void {
      if (!gate.isLoaded()) throw new ClientError('Unavailable', 'the API keys are not read yet', retrySoon);
      const refusal = gate.refusal(key, asked);
      if (!refusal) return;
      const { status, message } = refusals[refusal];
      const reason = { 'x-cloudyard-reason': refusal };
      if (status === 403) throw new ClientError('Forbidden', message, { headers: reason });
      throw new ClientError('Unauthenticated', message, { headers: { ...reason, 'www-authenticate': 'X-API-Key' } });
    },

    /** From when a server listens to when it stops, `authorize` is in step with the database. */
    start: () => gate.start(),
    stop: () => gate.stop(),
    gateState: () => gate.state(),

    /** Removes what is left of keys that were deleted more than a day ago. */
    forget: () => store.forget(db, new Date(clock.now().getTime() - dayMs)),
  };
}

/** The row as it is then. */
async function write(tx: Tx, key: ApiKeyRow, changes: Partial<ApiKeyRow>): Promise<ApiKeyRow> {
  const all = { ...changes, version: await store.nextVersion(tx) };
  await store.update(tx, key.id, all);
  return { ...key, ...all };
}

const retrySoon = { headers: { 'retry-after': '1' } };

/** `invalid` is what no column holds. */
function instantOrNull(text: string | null | undefined): Date | null | 'invalid' {
  return text === null || text === undefined ? null : (instantOf(text) ?? 'invalid');
}

function faultsOfExpire(expire: Date | null | 'invalid', now: Date): FieldError[] {
  if (expire === 'invalid')
    return [{ path: 'expire', message: 'must be a date and time such as 2026-11-20T09:52:52Z' }];
  return expire && expire <= now ? [{ path: 'expire', message: 'is in the past' }] : [];
}

function faultsOfContainers(containers: Container[]): FieldError[] {
  const first = new Map<string, number>();
  return containers.flatMap(({ name, namespace }, i) => {
    const before = first.get(`${name}/${namespace}`);
    if (before === undefined) first.set(`${name}/${namespace}`, i);
    return before === undefined ? [] : [{ path: `containers.${i}`, message: `is the same as containers.${before}` }];
  });
}

/** @throws ClientError 400 */
function refuse(faults: FieldError[]): void {
  if (faults.length > 0) throw invalidInput(faults.slice(0, 100));
}

/** The columns that a body makes other than they are. An `expire` that has passed may be sent again. */
function changesOf(key: ApiKeyRow, body: UpdateApiKey, now: Date): Partial<ApiKeyRow> {
  const containers = body.containers === undefined ? key.containers : (body.containers ?? []);
  const expire = body.expire === undefined ? key.expire : instantOrNull(body.expire);
  const keepsExpire = expire !== 'invalid' && expire?.getTime() === key.expire?.getTime();
  refuse([...faultsOfContainers(containers), ...(keepsExpire ? [] : faultsOfExpire(expire, now))]);
  const description = body.description === undefined ? key.description : (body.description ?? '');
  const isDisabled = body.is_disabled === undefined ? key.isDisabled : (body.is_disabled ?? false);
  return {
    ...(!sameContainers(containers, key.containers) && { containers }),
    ...(!keepsExpire && { expire: expire as Date | null }),
    ...(description !== key.description && { description }),
    ...(isDisabled !== key.isDisabled && { isDisabled }),
  };
}

/** In the order given: clients read the list back in it. */
function sameContainers(some: Container[], others: Container[]): boolean {
  return (
    some.length === others.length &&
    some.every(({ name, namespace }, i) => name === others[i]!.name && namespace === others[i]!.namespace)
  );
}
