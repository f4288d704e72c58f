/**
 * The rules of registries. A registry is a row: the token server authenticates its users from the commit on, and the host
 * of its region creates repositories when they are pushed. Only a removal needs the host; its request is answered when
 * the host has removed the data.
 */
import { type RequestContext, type Scope, whileWaiting } from '../../authz/actor.ts';
import { ClientError, unavailable } from '../../errors/catalogue.ts';
import { type Clock, withZone } from '../../platform/clock.ts';
import type { Tx } from '../../platform/db.ts';
import { hostAndPort } from '../../platform/network-address.ts';
import type { Keyring } from '../../platform/encryption.ts';
import {
  changesUnderLock,
  type Collection,
  orNameTaken,
  requireFound,
  requireProject,
  type ServiceDeps,
  toCollection,
  toQuotaFields,
} from '../service-kit.ts';
import type { PageQuery } from '../store-kit.ts';
import type { Tokens } from '../tokens/service.ts';
import { createRegistryEvents, eventsPurpose } from './contents/events.ts';
import { createRegistryContents } from './contents/service.ts';
import { type CreateRegistry, defaultStorageLimit, type Registry, type RegistryRequiredQuota } from './schema.ts';
import * as store from './store.ts';
import type { RegistryView } from './store.ts';
import {
  announceApi,
  announcedApi,
  type Authority,
  issuer,
  openAuthority,
  reencryptAuthority,
} from './token-server/authority.ts';
import { registryPaths } from './token-server/paths.ts';
import { createTokenServer, serviceOf } from './token-server/service.ts';
import { createRegistryUsers } from './users/service.ts';
import { waitUntilDone } from './wait-until-done.ts';

interface RegistriesDeps extends ServiceDeps {
  /** Real time, by which hosts check tokens; in development mode clients can move `clock`. */
  hostClock: Clock;
  keyring: Keyring;
  tokens: Pick<Tokens, 'authenticate' | 'recognizes'>;
  /** The URL of the API when the operator sets it; otherwise the address that an API server last announced. */
  publicUrl?: string;
}

export type Registries = ReturnType<typeof createRegistries>;

/** An API server without announcements for this time counts as stopped. */
const silenceSeconds = 10;

export function createRegistries(deps: RegistriesDeps) {
  const { db, clock, hostClock, tasks, quota, idempotency, keyring, tokens } = deps;
  const change = changesUnderLock(deps, 'registry', store.lock);
  const deletion = changesUnderLock(deps, 'registry', store.lockWithDeleted);
  let opened: Authority | undefined;
  const authority = async () => (opened ??= await openAuthority(db, keyring));

  const apiUrl = async () => (deps.publicUrl ?? (await announcedApi(db)))?.replace(/\/+$/, '') ?? null;

  const get = async (scope: Scope, id: number): Promise<Registry> =>
    toResponse(requireFound(await store.view(db, scope, id), 'registry', id));

  return {
    users: createRegistryUsers({ ...deps, authority }),
    contents: createRegistryContents(deps),
    events: createRegistryEvents({ db, authority }),
    tokenServer: createTokenServer({ db, clock, hostClock, authority, tokens }),

    async create(context: RequestContext, scope: Scope, body: CreateRegistry): Promise<Registry> {
      const { name, storage_limit: storageLimit = defaultStorageLimit } = body;
      const insert = async (tx: Tx) => {
        await requireProject(tx, scope.projectId);
        if (!(await store.hasHost(tx, scope.regionId))) throw noHost();
        const { clientId, projectId, regionId } = scope;
        const row = { clientId, projectId, regionId, name, storageLimit, createdAt: clock.now() };
        const { id } = await store.insert(tx, row);
        await quota.reserve(tx, scope, { registry_count: 1, registry_storage: storageLimit });
        return toResponse((await store.view(tx, scope, id))!);
      };
      return orNameTaken(
        idempotency.auditedTransaction(db, context, insert),
        'registries_name',
        `the project already has a registry ${name} in this region`,
      );
    },

    async list(scope: Scope, page: PageQuery): Promise<Collection<Registry>> {
      return toCollection(await store.list(db, scope, page), toResponse);
    },

    get,

    /** A limit below the usage is allowed: it only prevents pushes. */
    async resize(context: RequestContext, scope: Scope, id: number, limit = defaultStorageLimit): Promise<Registry> {
      return change(context, scope, id, async (tx, registry) => {
        const growth = limit - registry.storageLimit;
        if (growth !== 0) await store.update(tx, id, { storageLimit: limit, updatedAt: clock.now() });
        const response = toResponse((await store.view(tx, scope, id))!);
        if (growth > 0) await quota.reserve(tx, scope, { registry_storage: growth });
        if (growth < 0) await quota.release(tx, scope, { registry_storage: -growth });
        return response;
      });
    },

    /** Deletes a registry and its contents. It is hidden from the commit on. */
    async delete(context: RequestContext, scope: Scope, id: number): Promise<void> {
      await deletion(context, scope, id, async (tx, registry) => {
        if (!registry.deletedAt) await store.update(tx, id, { deletedAt: clock.now() });
        const key = { resource: 'registry', id: String(id), regionId: scope.regionId };
        await tasks.requestReconcile(tx, key, context.actor);
      });
      await whileWaiting(context, () => waitUntilDone(async () => (await store.findById(db, id)) === null));
    },

    async checkLimits(scope: Scope, limit: number): Promise<RegistryRequiredQuota> {
      return toQuotaFields(await quota.exceeded(db, scope, { registry_count: 1, registry_storage: limit }));
    },

    /**
     * Announces to the workers where this API server listens, at its start and every few seconds. A server whose
     * announcements stop is replaced by the next one that announces itself; `first` replaces it at once.
     */
    async announce(url: string, first = true): Promise<void> {
      await authority();
      await announceApi(db, url, first, silenceSeconds);
    },

    /** The configuration of the host of these regions; null until the first API server has announced itself. */
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

    /** Whether host:port serves images of a region, or is the API, which authenticates the clients of images. */
    async isOwn(authority: string): Promise<boolean> {
      const url = await apiUrl();
      return (url !== null && authority === hostAndPort(new URL(url))) || store.isHost(db, authority);
    },

    reencrypt: () => reencryptAuthority(db, keyring),
  };
}

function noHost(): ClientError {
  return unavailable('no worker of the region serves registries yet; try again in a moment', { retrySeconds: 5 });
}

function toResponse(row: RegistryView): Registry {
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
