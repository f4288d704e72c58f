/**
 * The rules of registries. A registry is a row: the token server lets its users in from the commit on, and the host of
 * its region makes repositories as they are pushed. Only what is removed needs the host, and is answered when it is gone.
 */
import { whileWaiting } from '../../authz/actor.ts';
import type { RequestContext, Scope } from '../../authz/actor.ts';
import { ClientError, notFound } from '../../errors/catalogue.ts';
import type { Idempotency } from '../../idempotency/idempotency.ts';
import { withZone } from '../../platform/clock.ts';
import type { Clock } from '../../platform/clock.ts';
import { hostAndPort } from '../../platform/network-address.ts';
import { violatedConstraint } from '../../platform/db.ts';
import type { Db } from '../../platform/db.ts';
import type { Keyring } from '../../platform/encryption.ts';
import type { Quota } from '../../quota/quota.ts';
import type { Tasks } from '../../tasks/tasks.ts';
import type { Tokens } from '../tokens/service.ts';
import { createRegistryEvents, eventsPurpose } from './contents/events.ts';
import { createRegistryContents } from './contents/service.ts';
import type { CreateRegistry, Registry, RegistryCollection, RegistryRequiredQuota } from './schema.ts';
import * as store from './store.ts';
import type { RegistryView } from './store.ts';
import { announceApi, announcedApi, issuer, openAuthority, reencryptAuthority } from './token-server/authority.ts';
import type { Authority } from './token-server/authority.ts';
import { registryPaths } from './token-server/paths.ts';
import { createTokenServer, serviceOf } from './token-server/service.ts';
import { createRegistryUsers } from './users/service.ts';
import { untilDone } from './waiting.ts';

export interface RegistriesDeps {
  db: Db;
  clock: Clock;
  /** Real time, which hosts check tokens by; a client may have moved `clock`. */
  hostClock: Clock;
  tasks: Tasks;
  quota: Quota;
  idempotency: Idempotency;
  keyring: Keyring;
  tokens: Pick<Tokens, 'authenticate'>;
  /** Where clients reach the API, when the operator says so; otherwise where an API server last said that it listens. */
  publicUrl?: string;
}

export type Registries = ReturnType<typeof createRegistries>;

const defaultLimit = 5;
/** An API server that said nothing for so long is not there. */
const silenceSeconds = 10;

export function createRegistries(deps: RegistriesDeps) {
  const { db, clock, hostClock, tasks, quota, idempotency, keyring } = deps;
  let opened: Authority | undefined;
  const authority = async () => (opened ??= await openAuthority(db, keyring));

  const apiUrl = async () => (deps.publicUrl ?? (await announcedApi(db)))?.replace(/\/+$/, '') ?? null;

  const get = async (scope: Scope, id: number): Promise<Registry> => {
    const found = await store.view(db, scope, id);
    if (!found) throw notFound('registry', id);
    return present(found);
  };

  return {
    users: createRegistryUsers({ ...deps, authority }),
    contents: createRegistryContents(deps),
    events: createRegistryEvents({ db, authority }),
    tokenServer: createTokenServer({ db, clock, hostClock, authority, authenticate: deps.tokens.authenticate }),

    async create(context: RequestContext, scope: Scope, body: CreateRegistry): Promise<Registry> {
      const { name, storage_limit: storageLimit = defaultLimit } = body;
      try {
        return await idempotency.auditedTransaction(db, context, async (tx) => {
          if (!(await store.holdProject(tx, scope.projectId))) throw notFound('project', scope.projectId);
          if (!(await store.hasHost(tx, scope.regionId))) throw noHost();
          const { clientId, projectId, regionId } = scope;
          const row = { clientId, projectId, regionId, name, storageLimit, createdAt: clock.now() };
          const { id } = await store.insert(tx, row);
          await quota.reserve(tx, scope, { registry_count: 1, registry_storage: storageLimit });
          return present((await store.view(tx, scope, id))!);
        });
      } catch (error) {
        if (violatedConstraint(error) !== 'registries_name') throw error;
        throw new ClientError('NameTaken', `the project has a registry ${name} in this region already`, {
          errors: [{ path: 'name', message: 'is taken' }],
        });
      }
    },

    async list(scope: Scope): Promise<RegistryCollection> {
      const results = (await store.list(db, scope)).map(present);
      return { count: results.length, results };
    },

    get,

    /** Below what is used it only stops pushes. */
    async resize(context: RequestContext, scope: Scope, id: number, limit = defaultLimit): Promise<Registry> {
      return idempotency.auditedTransaction(db, context, async (tx) => {
        const registry = await store.lock(tx, id, scope);
        if (!registry || registry.deletedAt) throw notFound('registry', id);
        const growth = limit - registry.storageLimit;
        if (growth !== 0) await store.update(tx, id, { storageLimit: limit, updatedAt: clock.now() });
        const shown = present((await store.view(tx, scope, id))!);
        if (growth > 0) await quota.reserve(tx, scope, { registry_storage: growth });
        if (growth < 0) await quota.release(tx, scope, { registry_storage: -growth });
        return shown;
      });
    },

    /** With all that it holds. Nobody sees it any more from the first moment on. */
    async delete(context: RequestContext, scope: Scope, id: number): Promise<void> {
      await idempotency.auditedTransaction(db, context, async (tx) => {
        const registry = await store.lock(tx, id, scope);
        if (!registry) throw notFound('registry', id);
        if (!registry.deletedAt) await store.update(tx, id, { deletedAt: clock.now() });
        const key = { resource: 'registry', id: String(id), regionId: scope.regionId };
        await tasks.requestReconcile(tx, key, context.actor);
      });
      await whileWaiting(context, () => untilDone(async () => (await store.load(db, id)) === null));
    },

    async checkLimits(scope: Scope, limit: number): Promise<RegistryRequiredQuota> {
      const exceeded = await quota.exceeded(db, scope, { registry_count: 1, registry_storage: limit });
      return Object.fromEntries(
        exceeded.flatMap(({ kind, limit, usage, requested }) => [
          [`${kind}_limit`, limit],
          [`${kind}_usage`, usage],
          [`${kind}_requested`, requested],
        ]),
      );
    },

    /**
     * Tells the workers where this API server listens: at its start, and again every few seconds. One that is silent is
     * replaced by whichever speaks next; `first` does not wait for that.
     */
    async announce(url: string, first = true): Promise<void> {
      await authority();
      await announceApi(db, url, first, silenceSeconds);
    },

    /** What the host of these regions must know; null as long as no API server was ever there. */
    async hosting(regionIds: number[]) {
      const url = await apiUrl();
      if (!url) return null;
      const { certificate, password } = await authority();
      const service = serviceOf(regionIds);
      return {
        ...{ service, issuer, certificate },
        realm: `${url}${registryPaths.token}`,
        httpSecret: password(`uploads ${service}`),
        events: { url: `${url}${registryPaths.events}`, secret: password(eventsPurpose) },
      };
    },

    /** Whether host:port serves images of a region, or is the API, where its clients log in. */
    async isOwn(authority: string): Promise<boolean> {
      const url = await apiUrl();
      return (url !== null && authority === hostAndPort(new URL(url))) || store.isHost(db, authority);
    },

    reencrypt: () => reencryptAuthority(db, keyring),
  };
}

function noHost(): ClientError {
  return new ClientError(
    'Unavailable',
    'the region has no worker yet that could serve a registry; try again in a moment',
    {
      headers: { 'retry-after': '5' },
    },
  );
}

function present(row: RegistryView): Registry {
  return {
    id: row.id,
    name: row.name,
    created_at: withZone(row.createdAt),
    updated_at: withZone(row.updatedAt),
    repo_count: row.repoCount,
    storage_limit: row.storageLimit,
    storage_used: row.storageUsed,
    url: `${row.address}/${store.prefixOf(row)}`,
  };
}
