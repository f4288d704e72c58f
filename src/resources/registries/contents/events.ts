/**
 * What the region's host tells: pushes, pulls and deletions, as events of distribution. They may come late, twice or
 * never; an event is taken in once, and what the worker sees when it looks at the storage corrects the rest.
 *
 * What is no event that we know is passed over: the host would send it again for ever.
 */
import { transaction } from '../../../platform/db.ts';
import type { Db, Tx } from '../../../platform/db.ts';
import { equalInConstantTime, sha256 } from '../../../platform/crypto.ts';
import { isStorable } from '../../../platform/storable-text.ts';
import { idIn, lock, prefixOf } from '../store.ts';
import type { Authority } from '../token-server/authority.ts';
import * as store from './store.ts';

/** What hosts show when they tell of events. */
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
    /** Whether a header is that of a host of ours. */
    async isHost(authorization: string): Promise<boolean> {
      const expected = `Bearer ${(await authority()).password(eventsPurpose)}`;
      return equalInConstantTime(sha256(authorization), sha256(expected));
    },

    async take(envelope: unknown): Promise<void> {
      const list = (envelope as { events?: unknown } | null)?.events;
      const events = (Array.isArray(list) ? list : []).flatMap(read).filter(isOfUse);
      if (events.length === 0) return;
      // In one order everywhere, so that two envelopes never wait for each other.
      const ids = [...new Set(events.map(({ registryId }) => registryId))].sort((a, b) => a - b);
      await transaction(db, async (tx) => {
        const registries = new Map<number, string>();
        for (const id of ids) {
          const row = await lock(tx, id);
          if (row && !row.deletedAt) registries.set(id, prefixOf(row));
        }
        const fresh = await store.newEvents(tx, [...new Set(events.map(({ id }) => id))]);
        for (const event of events) {
          if (!fresh.delete(event.id) || registries.get(event.registryId) !== event.prefix) continue;
          await apply(tx, event);
        }
      });
    },
  };
}

/** Pulls of layers and looks at manifests change nothing here. */
function isOfUse({ action, isManifest, method }: Event): boolean {
  if (action === 'pull') return isManifest && method === 'GET';
  return action === 'push' || action === 'mount' || (action === 'delete' && isManifest);
}

async function apply(tx: Tx, event: Event): Promise<void> {
  const { registryId, repository, digest, size, tag, at, references } = event;
  if (event.action === 'delete') return store.forget(tx, registryId, repository, digest, null);
  if (event.action === 'pull') return store.putPull(tx, registryId, { repository, digest, tag, at });
  // Its own size, which the host has measured. What a manifest says of others is the word of the client that pushed it.
  await store.putBlob(tx, registryId, digest, size);
  if (!event.isManifest) return;
  const sum = [...references.values()].reduce((sum, each) => sum + each, size);
  const whole = Math.min(sum, Number.MAX_SAFE_INTEGER);
  await store.putManifest(tx, registryId, { repository, digest, size: whole, tag, at });
}

/** Nothing for what is no event of ours. */
function read(given: unknown): Event[] {
  const { id, action, timestamp, target, request } = fieldsOf(given);
  const { repository, digest, mediaType, size, length, tag, references, url } = fieldsOf(target);
  if (!isText(id, 200) || typeof action !== 'string' || !isText(repository, 400) || !isDigest(digest)) return [];
  const slash = repository.indexOf('/');
  const prefix = repository.slice(0, Math.max(slash, 0));
  const registryId = idIn(prefix);
  const at = new Date(String(timestamp));
  if (slash < 1 || slash === repository.length - 1 || registryId === null || Number.isNaN(at.getTime())) return [];
  const type = String(mediaType ?? '');
  // Deletions carry no media type, and those of layers no address either.
  const isManifest =
    /manifest|index/.test(type) || String(url).includes('/manifests/') || (action === 'delete' && !type);
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

function isDigest(value: unknown): value is string {
  return typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value);
}

function bytes(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}
