/** The rules of API keys. A key is a row, and is in the memory of every server (key-cache.ts). */
import { randomBytes, randomUUID } from 'node:crypto';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import {
  ClientError,
  errorsOfRepeated,
  type FieldError,
  requireNoErrors,
  unavailable,
} from '../../errors/catalogue.ts';
import type { ValidFields } from '../../errors/valid-fields.ts';
import { daysBefore, wholeSecond, withZone } from '../../platform/clock.ts';
import { randomSecret, sha256 } from '../../platform/crypto.ts';
import type { Tx } from '../../platform/db.ts';
import { readInGroups } from '../../platform/large-rows.ts';
import {
  changedColumns,
  isEmpty,
  orNameTaken,
  readExpiry,
  requireFound,
  requireProject,
  type ServiceDeps,
} from '../service-kit.ts';
import type { PageQuery } from '../store-kit.ts';
import { type ContainerRequest, type KeyCache, refusals } from './key-cache.ts';
import type { ApiKey, Container, CreateApiKey, CreatedApiKey, UpdateApiKey } from './schema.ts';
import * as store from './store.ts';
import type { ApiKeyRow } from './store.ts';

interface ApiKeysDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  keyCache: KeyCache;
}

export type ApiKeys = ReturnType<typeof createApiKeys>;

export function createApiKeys(deps: ApiKeysDeps) {
  const { db, clock, idempotency, keyCache } = deps;

  const statusOf = ({ isDisabled, expire, createdAt, keyId }: ApiKeyRow): ApiKey['status'] => {
    const now = clock.now();
    if (isDisabled) return 'disabled';
    if (expire && expire <= now) return 'expired';
    return createdAt > now || !keyCache.knows(keyId) ? 'pending' : 'active';
  };

  const toResponse = (key: ApiKeyRow): ApiKey => ({
    name: key.name,
    containers: key.containers,
    created_at: withZone(key.createdAt),
    description: key.description,
    expire: withZone(key.expire),
    is_disabled: key.isDisabled,
    source: 'cloud',
    status: statusOf(key),
  });

  /** Runs a change in one transaction, and applies it to the cache of this server before the request is answered. */
  const auditedTransaction = async <T>(
    context: RequestContext,
    work: (tx: Tx, changed: (row: ApiKeyRow) => void) => Promise<T>,
    transaction = idempotency.auditedTransaction,
  ): Promise<T> => {
    let changed: ApiKeyRow | undefined;
    const note = (row: ApiKeyRow) => (changed = row);
    const result = await transaction(db, context, (tx) => ((changed = undefined), work(tx, note)));
    if (changed) keyCache.apply(changed);
    return result;
  };

  return {
    /** For an invalid body. */
    bodyErrors: ({ containers = [], expire }: ValidFields<CreateApiKey>): FieldError[] => [
      ...containerErrors(containers),
      ...readExpiry('expire', expire, clock.now()).errors,
    ],

    /** For an invalid body. A past expiry is not reported, because it may be that of the key. */
    errorsOfUpdate({ containers, expire }: ValidFields<UpdateApiKey>): FieldError[] {
      const { date, errors } = readExpiry('expire', expire, clock.now());
      return [...containerErrors(containers ?? []), ...(date === null ? errors : [])];
    },

    async create(context: RequestContext, scope: Scope, body: CreateApiKey): Promise<CreatedApiKey> {
      const expiry = readExpiry('expire', body.expire, clock.now());
      requireNoErrors([...containerErrors(body.containers), ...expiry.errors]);
      const keyId = randomBytes(8).toString('hex');
      const secret = randomSecret();
      const key = {
        id: randomUUID(),
        projectId: scope.projectId,
        regionId: scope.regionId,
        name: body.name,
        description: body.description ?? '',
        containers: body.containers,
        expire: expiry.date,
        isDisabled: body.is_disabled ?? false,
        keyId,
        secretHash: sha256(secret),
        createdAt: clock.now(),
        deletedAt: null,
      };
      const insert = async (tx: Tx, changed: (row: ApiKeyRow) => void) => {
        await requireProject(tx, scope.projectId);
        await requireRoom(tx, key, 0);
        await store.limitOfProject(tx, scope.projectId);
        const row = { ...key, version: await store.nextVersion(tx) };
        await store.insert(tx, row);
        changed(row);
        // The key is valid on this server from the commit on.
        const status: ApiKey['status'] = row.isDisabled ? 'disabled' : 'active';
        return { ...toResponse(row), status, secret: `${keyId}.${secret}` };
      };
      return orNameTaken(
        auditedTransaction(context, insert, idempotency.sealedTransaction),
        'api_keys_name',
        `the API key ${body.name} already exists`,
      );
    },

    /** A page, by name, in groups: a thousand keys may be large. */
    async list(scope: Scope, page: PageQuery): Promise<{ count: number; keys: AsyncIterable<ApiKey[]> }> {
      const { count, rows } = await store.list(db, scope, page);
      return { count, keys: readInGroups(rows, (ids) => store.findRows(db, ids), toResponse) };
    },

    async get(scope: Scope, name: string): Promise<ApiKey> {
      return toResponse(requireFound(await store.find(db, scope, name), 'API key', name));
    },

    /** An omitted field keeps its value; null clears it. */
    async update(context: RequestContext, scope: Scope, name: string, body: UpdateApiKey): Promise<ApiKey> {
      return auditedTransaction(context, async (tx, changed) => {
        const key = requireFound(await store.lock(tx, scope, name), 'API key', name);
        const changes = changesOf(key, body, clock.now());
        if (isEmpty(changes)) return toResponse(key);
        await requireRoom(tx, { ...key, ...changes }, key.containers.length);
        const row = await write(tx, key, changes);
        changed(row);
        return toResponse(row);
      });
    },

    async delete(context: RequestContext, scope: Scope, name: string): Promise<void> {
      await auditedTransaction(context, async (tx, changed) => {
        const key = requireFound(await store.lock(tx, scope, name), 'API key', name);
        changed(await write(tx, key, { deletedAt: clock.now() }));
      });
    },

    /** Whether a key grants access to a container, without the reason. Reads no database. */
    opens: (key: string | undefined, request: ContainerRequest): boolean =>
      keyCache.isLoaded() && keyCache.refusal(key, request) === null,

    /** Authorizes access to a container. Reads no database. @throws ClientError 401, 403 with the reason; 503 */
    authorize(key: string | undefined, request: ContainerRequest): void {
      if (!keyCache.isLoaded()) throw unavailable('the API keys are not loaded yet');
      const refusal = keyCache.refusal(key, request);
      if (!refusal) return;
      const { status, message } = refusals[refusal];
      const reason = { 'x-cloudyard-reason': refusal };
      if (status === 403) throw new ClientError('Forbidden', message, { headers: reason });
      throw new ClientError('Unauthenticated', message, { headers: { ...reason, 'www-authenticate': 'X-API-Key' } });
    },

    /** `authorize` follows the database from `start` to `stop`. */
    start: () => keyCache.start(),
    stop: () => keyCache.stop(),
    cacheState: () => keyCache.state(),

    /** Removes the rows of keys that were deleted more than a day ago. */
    removeDeleted: () => store.removeDeleted(db, daysBefore(clock.now(), 1)),
  };
}

/** Writes the changes under a new version. Returns the new row. */
async function write(tx: Tx, key: ApiKeyRow, changes: Partial<ApiKeyRow>): Promise<ApiKeyRow> {
  const all = { ...changes, version: await store.nextVersion(tx) };
  await store.update(tx, key.id, all);
  return { ...key, ...all };
}

/** Containers without a valid name or namespace are ignored. */
function containerErrors(containers: ValidFields<Container>[]): FieldError[] {
  const names = containers.map(({ name, namespace }) => name && namespace && `${name}/${namespace}`);
  return errorsOfRepeated(names, (i, first) => ({
    path: `containers.${i}`,
    message: `is the same as containers.${first}`,
  }));
}

/** Every server has the containers of all keys in memory, about 250 bytes each. */
const maxContainersOfProject = 100_000;

/** `before`: the containers that the key had. A key that does not grow is not refused. @throws ClientError 400 */
async function requireRoom(
  tx: Tx,
  { id, projectId, containers }: Pick<ApiKeyRow, 'id' | 'projectId' | 'containers'>,
  before: number,
): Promise<void> {
  if (containers.length <= before) return;
  const others = await store.countOtherContainers(tx, projectId, id);
  if (others + containers.length <= maxContainersOfProject) return;
  const message =
    `must have at most ${Math.max(0, maxContainersOfProject - others)} containers: ` +
    `the API keys of a project name at most ${maxContainersOfProject} together, and the others name ${others}`;
  requireNoErrors([{ path: 'containers', message }]);
}

/** The columns that an update changes. The current expiry is accepted even after it has passed. */
function changesOf(key: ApiKeyRow, body: UpdateApiKey, now: Date): Partial<ApiKeyRow> {
  const expiry = readExpiry('expire', body.expire, now);
  const keepsExpiry = expiry.date !== null && isCurrentExpiry(expiry.date, key.expire);
  requireNoErrors([...containerErrors(body.containers ?? []), ...(keepsExpiry ? [] : expiry.errors)]);
  return changedColumns(key, {
    containers: body.containers === null ? [] : body.containers,
    expire: body.expire === undefined || keepsExpiry ? undefined : expiry.date,
    description: body.description === null ? '' : body.description,
    // A client that sends unset fields as null must not enable a disabled key.
    isDisabled: body.is_disabled ?? undefined,
  });
}

/** Whether a date is the current expiry, or what responses show of it: its whole second. */
function isCurrentExpiry(date: Date, current: Date | null): boolean {
  return current !== null && [current, wholeSecond(current)].some((one) => one.getTime() === date.getTime());
}
