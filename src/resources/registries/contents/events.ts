/**
 * Events of distribution on the region's host: pushes, pulls and deletions. They may arrive late, twice or never. Each
 * event is processed once, and the worker's scans of the storage correct the rest.
 *
 * Unknown events are ignored: the host would send a refused event again forever.
 */
import { isDigest } from '../../../drivers/registry.ts';
import { type Db, transaction, type Tx } from '../../../platform/db.ts';
import { equalInConstantTime, sha256 } from '../../../platform/crypto.ts';
import { isStorable } from '../../../platform/storable-text.ts';
import { idIn, lockById, prefixOf } from '../store.ts';
import type { Authority } from '../token-server/authority.ts';
import * as store from './store.ts';

/** The purpose of the password with which hosts send events. */
export const eventsPurpose = 'events';

interface Event {
  id: string;
  action: string;
  at: Date;
  registryId: number;
  prefix: string;
  repository: string;
  digest: string;
  size: number;
  isManifest: boolean;
  tag: string | null;
  /** Descriptors that a manifest names: digest and bytes. */
  references: Map<string, number>;
  method: string;
}

export type RegistryEvents = ReturnType<typeof createRegistryEvents>;

export function createRegistryEvents({ db, authority }: { db: Db; authority(): Promise<Authority> }) {
  return {
    /** Whether the Authorization header is that of a host. */
    async isHost(authorization: string): Promise<boolean> {
      const expected = `Bearer ${(await authority()).password(eventsPurpose)}`;
      return equalInConstantTime(sha256(authorization), sha256(expected));
    },

    async take(envelope: unknown): Promise<void> {
      const list = (envelope as { events?: unknown } | null)?.events;
      const events = (Array.isArray(list) ? list : []).flatMap(parseEvent).filter(isRelevant);
      if (events.length === 0) return;
      // Always in the same order, so that two envelopes cannot deadlock.
      const ids = [...new Set(events.map(({ registryId }) => registryId))].sort((a, b) => a - b);
      await transaction(db, async (tx) => {
        const registries = new Map<number, string>();
        for (const id of ids) {
          const row = await lockById(tx, id);
          if (row && !row.deletedAt) registries.set(id, prefixOf(row));
        }
        const fresh = await store.takeNewEvents(tx, [...new Set(events.map(({ id }) => id))]);
        for (const event of events) {
          if (!fresh.delete(event.id) || registries.get(event.registryId) !== event.prefix) continue;
          await apply(tx, event);
        }
      });
    },
  };
}

/** Pulls of layers and HEAD requests for manifests change no row. */
function isRelevant({ action, isManifest, method }: Event): boolean {
  if (action === 'pull') return isManifest && method === 'GET';
  return action === 'push' || action === 'mount' || (action === 'delete' && isManifest);
}

async function apply(tx: Tx, event: Event): Promise<void> {
  const { registryId, repository, digest, size, tag, at, references } = event;
  if (event.action === 'delete') return store.remove(tx, registryId, repository, digest, null);
  if (event.action === 'pull') return store.putPull(tx, registryId, { repository, digest, tag, at });
  if (event.isManifest && (await store.wasRemoved(tx, registryId, { repository, digest, tag, at }))) return;
  // The size that the host measured. The sizes in a manifest are only claims of the client that pushed it.
  await store.putBlob(tx, registryId, digest, size);
  if (!event.isManifest) return;
  const images = await store.sizesOfArtifacts(tx, registryId, repository, [...references.keys()]);
  const sum = [...references].reduce((sum, [digest, claimed]) => sum + (images.get(digest) ?? claimed), size);
  const whole = Math.min(sum, Number.MAX_SAFE_INTEGER);
  await store.putManifest(tx, registryId, { repository, digest, size: whole, tag, at });
}

/** Empty for an unknown event. */
function parseEvent(given: unknown): Event[] {
  const { id, action, timestamp, target, request } = fieldsOf(given);
  const { repository, digest, mediaType, size, length, tag, references, url } = fieldsOf(target);
  if (!isText(id, 200) || typeof action !== 'string' || !isText(repository, 400) || !isDigest(digest)) return [];
  const slash = repository.indexOf('/');
  const prefix = repository.slice(0, Math.max(slash, 0));
  const registryId = idIn(prefix);
  const at = new Date(String(timestamp));
  if (slash < 1 || slash === repository.length - 1 || registryId === null || Number.isNaN(at.getTime())) return [];
  const type = String(mediaType ?? '');
  // Deletions have no media type, and deletions of layers no URL either.
  const isManifest =
    /manifest|index/.test(type) || /\/manifests\/[^/]+$/.test(String(url)) || (action === 'delete' && !type);
  return [
    {
      ...{ id, action, at, registryId, prefix, digest, isManifest },
      repository: repository.slice(slash + 1),
      size: bytes(size ?? length),
      tag: isText(tag, 128) ? tag : null,
      references: new Map(
        (Array.isArray(references) ? references : []).map(fieldsOf).flatMap((each): [string, number][] => {
          return isDigest(each['digest']) ? [[each['digest'], bytes(each['size'])]] : [];
        }),
      ),
      method: String(fieldsOf(request)['method']),
    },
  ];
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
}

function isText(value: unknown, most: number): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= most && isStorable(value);
}

function bytes(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
