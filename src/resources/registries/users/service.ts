/**
 * Users of a registry: who may push and pull, until when. A secret is answered when it is made and never again; only a
 * MAC of it is kept (token-server/authority.ts).
 */
import type { RequestContext, Scope } from '../../../authz/actor.ts';
import { ClientError, invalidInput, notFound } from '../../../errors/catalogue.ts';
import type { Idempotency } from '../../../idempotency/idempotency.ts';
import { withZone } from '../../../platform/clock.ts';
import type { Clock } from '../../../platform/clock.ts';
import { randomSecret } from '../../../platform/crypto.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import type {
  CreateRegistryUser,
  RegistryUser,
  RegistryUserCollection,
  RegistryUsersWithSecrets,
  RegistryUserWithSecret,
  UpdateRegistryUser,
} from '../schema.ts';
import { load, lock } from '../store.ts';
import type { Authority } from '../token-server/authority.ts';
import * as store from './store.ts';
import type { UserRow } from './store.ts';

export interface RegistryUsersDeps {
  db: Db;
  clock: Clock;
  idempotency: Idempotency;
  authority(): Promise<Authority>;
}

export type RegistryUsers = ReturnType<typeof createRegistryUsers>;

const dayMs = 86_400_000;
const maxUsers = 1000;
/** A date for clients that want one; a day before the last, so that no time zone pushes it over the edge. */
const never = '9999-12-31T00:00:00Z';

export function createRegistryUsers({ db, clock, idempotency, authority }: RegistryUsersDeps) {
  const lockRegistry = async (tx: Tx, scope: Scope, id: number): Promise<void> => {
    const registry = await lock(tx, id, scope);
    if (!registry || registry.deletedAt) throw notFound('registry', id);
  };

  /** All of them or none. What `answer` makes of them is what a repetition of the request gets, too. */
  const createAll = async <T>(
    context: RequestContext,
    scope: Scope,
    registryId: number,
    users: CreateRegistryUser[],
    answer: (made: RegistryUserWithSecret[]) => T,
  ): Promise<T> => {
    const { secretMac } = await authority();
    return idempotency.auditedTransaction(
      db,
      context,
      async (tx) => {
        await lockRegistry(tx, scope, registryId);
        await refuseTaken(tx, registryId, users);
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
            expiresAt: after(now, duration),
          })),
        );
        return answer(rows.map((row, i) => ({ ...present(row), secret: secrets[i]! })));
      },
      { sealed: true },
    );
  };

  return {
    create: (context: RequestContext, scope: Scope, registryId: number, user: CreateRegistryUser) =>
      createAll(context, scope, registryId, [user], ([made]) => made!),

    async createMany(
      context: RequestContext,
      scope: Scope,
      registryId: number,
      users: CreateRegistryUser[],
    ): Promise<RegistryUsersWithSecrets> {
      const names = users.map(({ name }) => name);
      const twice = names.flatMap((name, i) =>
        names.indexOf(name) < i ? [{ path: `users.${i}.name`, message: `${name} is in the list already` }] : [],
      );
      if (twice.length > 0) throw invalidInput(twice);
      return createAll(context, scope, registryId, users, (results) => ({
        ...results[0]!,
        count: results.length,
        results,
      }));
    },

    async list(scope: Scope, registryId: number): Promise<RegistryUserCollection> {
      const registry = await load(db, registryId, scope);
      if (!registry || registry.deletedAt) throw notFound('registry', registryId);
      const results = (await store.list(db, registryId)).map(present);
      return { count: results.length, results };
    },

    /** The duration counts from now. */
    async update(
      context: RequestContext,
      scope: Scope,
      registryId: number,
      id: number,
      body: UpdateRegistryUser,
    ): Promise<RegistryUser> {
      const { duration, read_only: readOnly } = body;
      return idempotency.auditedTransaction(db, context, async (tx) => {
        await lockRegistry(tx, scope, registryId);
        const expiresAt = after(clock.now(), duration);
        const changes = { duration, expiresAt, ...(readOnly !== undefined && { readOnly }) };
        const row = await store.update(tx, registryId, id, changes);
        if (!row) throw notFound('registry user', id);
        return present(row);
      });
    },

    async refreshSecret(
      context: RequestContext,
      scope: Scope,
      registryId: number,
      id: number,
    ): Promise<RegistryUserWithSecret> {
      const { secretMac } = await authority();
      return idempotency.auditedTransaction(
        db,
        context,
        async (tx) => {
          await lockRegistry(tx, scope, registryId);
          const user = await store.find(tx, registryId, id);
          if (!user) throw notFound('registry user', id);
          const secret = randomSecret();
          await store.update(tx, registryId, id, { secretMac: secretMac(user.name, secret) });
          return { ...present(user), secret };
        },
        { sealed: true },
      );
    },

    async delete(context: RequestContext, scope: Scope, registryId: number, id: number): Promise<void> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        await lockRegistry(tx, scope, registryId);
        if (!(await store.remove(tx, registryId, id))) throw notFound('registry user', id);
      });
    },
  };
}

async function refuseTaken(tx: Tx, registryId: number, users: CreateRegistryUser[]): Promise<void> {
  const existing = await store.list(tx, registryId);
  const names = new Set(existing.map(({ name }) => name));
  const taken = users.map(({ name }) => name).filter((name) => names.has(name));
  if (taken.length > 0) {
    throw new ClientError('NameTaken', `registry ${registryId} has a user ${taken.join(', ')} already`);
  }
  if (existing.length + users.length > maxUsers) {
    throw new ClientError('Conflict', `registry ${registryId} would have more than ${maxUsers} users`);
  }
}

/** Days from then; null: never. */
function after(then: Date, days: number): Date | null {
  return days === -1 ? null : new Date(then.getTime() + days * dayMs);
}

function present(row: UserRow): RegistryUser {
  return {
    id: row.id,
    name: row.name,
    created_at: withZone(row.createdAt),
    duration: row.duration,
    expires_at: withZone(row.expiresAt) ?? never,
    read_only: row.readOnly,
  };
}
