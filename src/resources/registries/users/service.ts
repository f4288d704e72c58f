/**
 * Users of a registry: who may push and pull, and until when.
 *
 * Invariant: only the response that creates a secret contains it. The database has a MAC of it (token-server/authority.ts).
 */
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import {
  ClientError,
  errorsOfRepeated,
  type FieldError,
  nameTaken,
  notFound,
  requireNoErrors,
} from '../../../errors/catalogue.ts';
import type { ValidFields } from '../../../errors/valid-fields.ts';
import { dayMs, withZone } from '../../../platform/clock.ts';
import { randomSecret } from '../../../platform/crypto.ts';
import type { Tx } from '../../../platform/db.ts';
import { changesUnderLock, type Collection, requireFound, type ServiceDeps, toCollection } from '../../service-kit.ts';
import type { PageQuery } from '../../store-kit.ts';
import type {
  CreateRegistryUser,
  RegistryUser,
  RegistryUsersWithSecrets,
  RegistryUserWithSecret,
  UpdateRegistryUser,
} from '../schema.ts';
import { find, lock } from '../store.ts';
import type { Authority } from '../token-server/authority.ts';
import * as store from './store.ts';
import type { UserRow } from './store.ts';

interface RegistryUsersDeps extends Pick<ServiceDeps, 'db' | 'clock' | 'idempotency'> {
  authority(): Promise<Authority>;
}

export type RegistryUsers = ReturnType<typeof createRegistryUsers>;

const maxUsers = 1000;
/** For clients that require a date. One day before the last, so that it is valid in every time zone. */
const never = '9999-12-31T00:00:00Z';

export function createRegistryUsers(deps: RegistryUsersDeps) {
  const { db, clock, idempotency, authority } = deps;
  const change = changesUnderLock(deps, 'registry', lock);
  /** For a response that contains a secret. */
  const changeSealed = changesUnderLock(deps, 'registry', lock, idempotency.sealedTransaction);

  /** Creates all users or none. A repeated request gets the same response, which `toResult` makes. */
  const createAll = async <T>(
    context: RequestContext,
    scope: Scope,
    registryId: number,
    users: CreateRegistryUser[],
    pathOfName: (index: number) => string,
    toResult: (created: RegistryUserWithSecret[]) => T,
  ): Promise<T> => {
    const { secretMac } = await authority();
    return changeSealed(context, scope, registryId, async (tx) => {
      await requireFreeNames(tx, registryId, users, pathOfName);
      const now = clock.now();
      const secrets = users.map(({ secret }) => secret || randomSecret());
      const rows = await store.insert(
        tx,
        users.map(({ name, duration, read_only = false }, i) => ({
          registryId,
          name,
          secretMac: secretMac(name, secrets[i]!),
          duration,
          readOnly: read_only,
          createdAt: now,
          expiresAt: addDays(now, duration),
        })),
      );
      return toResult(rows.map((row, i) => ({ ...toResponse(row), secret: secrets[i]! })));
    });
  };

  return {
    create: (context: RequestContext, scope: Scope, registryId: number, user: CreateRegistryUser) =>
      createAll(
        context,
        scope,
        registryId,
        [user],
        () => 'name',
        ([made]) => made!,
      ),

    async createMany(
      context: RequestContext,
      scope: Scope,
      registryId: number,
      users: CreateRegistryUser[],
    ): Promise<RegistryUsersWithSecrets> {
      requireNoErrors(errorsOfUsers({ users }));
      return createAll(context, scope, registryId, users, pathInList, (results) => ({
        ...results[0]!,
        count: results.length,
        results,
      }));
    },

    async list(scope: Scope, registryId: number, page: PageQuery): Promise<Collection<RegistryUser>> {
      requireFound(await find(db, scope, registryId), 'registry', registryId);
      return toCollection(await store.list(db, registryId, page), toResponse);
    },

    /** The duration starts now. */
    async update(
      context: RequestContext,
      scope: Scope,
      registryId: number,
      id: number,
      body: UpdateRegistryUser,
    ): Promise<RegistryUser> {
      const { duration, read_only: readOnly } = body;
      return change(context, scope, registryId, async (tx) => {
        const expiresAt = addDays(clock.now(), duration);
        const changes = { duration, expiresAt, ...(readOnly !== undefined && { readOnly }) };
        return toResponse(requireFound(await store.update(tx, registryId, id, changes), 'registry user', id));
      });
    },

    async refreshSecret(
      context: RequestContext,
      scope: Scope,
      registryId: number,
      id: number,
    ): Promise<RegistryUserWithSecret> {
      const { secretMac } = await authority();
      return changeSealed(context, scope, registryId, async (tx) => {
        const user = requireFound(await store.find(tx, registryId, id), 'registry user', id);
        const secret = randomSecret();
        await store.update(tx, registryId, id, { secretMac: secretMac(user.name, secret) });
        return { ...toResponse(user), secret };
      });
    },

    delete: (context: RequestContext, scope: Scope, registryId: number, id: number): Promise<void> =>
      change(context, scope, registryId, async (tx) => {
        if (!(await store.remove(tx, registryId, id))) throw notFound('registry user', id);
      }),
  };
}

const pathInList = (index: number) => `users.${index}.name`;

/** The names that a list repeats. Users without a valid name are ignored. */
export function errorsOfUsers({ users = [] }: ValidFields<{ users: CreateRegistryUser[] }>): FieldError[] {
  const names = users.map(({ name }) => name);
  return errorsOfRepeated(names, (i, first) => ({ path: pathInList(i), message: `repeats ${pathInList(first)}` }));
}

async function requireFreeNames(
  tx: Tx,
  registryId: number,
  users: CreateRegistryUser[],
  pathOfName: (index: number) => string,
): Promise<void> {
  const names = await store.names(tx, registryId);
  const taken = users.flatMap(({ name }, i) => (names.has(name) ? [{ name, path: pathOfName(i) }] : []));
  if (taken.length > 0) {
    const message = `registry ${registryId} already has a user ${taken.map(({ name }) => name).join(', ')}`;
    throw nameTaken(
      message,
      taken.map(({ path }) => path),
    );
  }
  if (names.size + users.length > maxUsers) {
    throw new ClientError(
      'Conflict',
      `a registry can have at most ${maxUsers} users; registry ${registryId} has ${names.size}`,
    );
  }
}

/** Null: never. */
function addDays(start: Date, days: number): Date | null {
  return days === -1 ? null : new Date(start.getTime() + days * dayMs);
}

function toResponse(row: UserRow): RegistryUser {
  return {
    id: row.id,
    name: row.name,
    created_at: withZone(row.createdAt),
    duration: row.duration,
    expires_at: withZone(row.expiresAt) ?? never,
    read_only: row.readOnly,
  };
}
