/**
 * How the worker of a region reaches its hosts: it publishes the desired state of a resource (publish-queue.ts) and waits until
 * every host has applied it (progress-watch.ts).
 */
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { unlessAborted } from '../drivers/ends-within.ts';
import type { Keyring } from '../platform/encryption.ts';
import type { Listener } from '../platform/listener.ts';
import type { PublishedKind, Publisher } from './part.ts';
import { createProgressWatch } from './progress-watch.ts';
import { createPublishQueue, type PublishQueueOptions } from './publish-queue.ts';
import { createStateCodec, decodeStates } from './state-codec.ts';
import * as store from './store.ts';

interface PublishersDeps extends Pick<PublishQueueOptions, 'db' | 'log' | 'regionId' | 'epoch' | 'onSuperseded'> {
  keyring: Keyring;
  listener: Listener;
  /** How often to check without a notification; default 500. */
  pollMs?: number;
}

const defaultPollMs = 500;
const decompress = promisify(gunzip);

/** Publishers of a region, one for each kind. They publish until `stop`, which waits for requests that are being published, but not for the hosts. */
export function createPublishers(deps: PublishersDeps) {
  const { db, keyring, listener, regionId } = deps;
  const codec = createStateCodec(keyring, regionId);
  const watch = createProgressWatch(deps);
  const queue = createPublishQueue({ ...deps, codec, onPublished: watch.add });
  const timer = setInterval(watch.check, deps.pollMs ?? defaultPollMs).unref();
  const unfollow = listener.follow(store.observedChannel(regionId), {
    onNotification: watch.check,
    onConnected: async () => watch.check(),
  });

  const publish = async (kind: PublishedKind, id: string, state: unknown, signal: AbortSignal) => {
    signal.throwIfAborted();
    const { promise: published, ...settle } = Promise.withResolvers<void>();
    const text = state === null ? null : JSON.stringify(state);
    queue.add({ ...{ kind, id, text, signal, revision: 0 }, ...settle });
    await unlessAborted(published, signal);
  };

  const readStates = async (kind: PublishedKind) => {
    const rows = await store.publishedOfKind(db, regionId, kind);
    return decodeStates(
      codec,
      rows.map((row) => ({ ...row, kind })),
    );
  };

  return {
    of: <State>(kind: PublishedKind): Publisher<State> => ({
      publish: (id, state, signal) => publish(kind, id, state, signal),
      ids: () => store.publishedIds(db, regionId, kind),
      states: async () => (await readStates(kind)).states as Map<string, State>,
      undecodable: async () => (await readStates(kind)).undecodable,
      async readings<Readings>() {
        const rows = await store.readingsOfKind(db, regionId, kind);
        const read = rows.map(async ({ host, readings }): Promise<[string, Readings]> => {
          return [host, JSON.parse((await decompress(Buffer.from(readings, 'base64'))).toString('utf8')) as Readings];
        });
        return new Map(await Promise.all(read));
      },
    }),
    async stop(): Promise<void> {
      clearInterval(timer);
      await unfollow();
      await queue.idle();
      await watch.idle();
    },
  };
}

export type Publishers = ReturnType<typeof createPublishers>;
