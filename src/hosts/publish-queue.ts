/**
 * Writes the states that drivers publish to `published_states`, in batches: requests that arrive during a statement share the
 * next one.
 *
 * Invariant: only the last worker that has claimed a region (`claimPublishing`) publishes. One that was frozen for longer than
 * it keeps its lock publishes nothing when it continues.
 */
import { shared, takeBatch } from '../platform/turns.ts';
import { DriverError } from '../errors/driver-error.ts';
import type { Db } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import type { StateCodec } from './state-codec.ts';
import * as store from './store.ts';

/** A call of `Publisher.publish`. */
export interface PublishRequest extends store.Key {
  /** The state as JSON; null: removed. */
  text: string | null;
  signal: AbortSignal;
  /** The revision of the state when it is published; 0: there was nothing to remove. */
  revision: number;
  resolve(): void;
  reject(error: unknown): void;
}

export interface PublishQueueOptions {
  db: Db;
  codec: StateCodec;
  log: Logger;
  regionId: number;
  /** From `claimPublishing` of store.ts. */
  epoch: number;
  onPublished(requests: PublishRequest[]): void;
  /** Another worker has claimed the region; this queue publishes nothing more. */
  onSuperseded(): void;
}

const maxBatch = 200;

export function createPublishQueue(options: PublishQueueOptions) {
  const queue: PublishRequest[] = [];
  const publishAll = shared(async () => {
    while (queue.length > 0) {
      const batch = takeBatch(queue, store.keyOf, maxBatch);
      try {
        await publishBatch(options, batch);
        options.onPublished(batch);
      } catch (error) {
        for (const request of batch) request.reject(error);
      }
    }
  });
  return {
    /** Rejects the request if it cannot be published; otherwise `onPublished` gets it. */
    add(request: PublishRequest): void {
      queue.push(request);
      void publishAll();
    },
    /** Resolves when all requests were published or rejected. */
    idle: publishAll,
  };
}

async function publishBatch(options: PublishQueueOptions, batch: PublishRequest[]): Promise<void> {
  const { db, codec, regionId } = options;
  const changed = await changedAmong(options, batch);
  if (changed.length === 0) return;
  const states = changed.map(({ kind, id, text }) => ({
    ...{ kind, id },
    state: text === null ? null : codec.encode({ kind, id }, text),
  }));
  const revisions = await store.insertPublished(db, options, states);
  if (revisions.length === 0) {
    options.onSuperseded();
    throw superseded(regionId);
  }
  const byKey = new Map(revisions.map((row) => [store.keyOf(row), row.revision]));
  for (const request of changed) request.revision = byKey.get(store.keyOf(request))!;
}

/** A state that is published already and that no host failed to apply keeps its revision. */
async function changedAmong(
  { db, codec, log, regionId }: PublishQueueOptions,
  batch: PublishRequest[],
): Promise<PublishRequest[]> {
  /** `undefined` if the state cannot be decrypted: it is published again, and the other requests are not affected. */
  const textOf = (key: store.Key, state: Buffer | null) => {
    try {
      return state && codec.text(key, state);
    } catch (error) {
      log.error({ err: error, regionId, kind: key.kind, id: key.id }, 'a published state cannot be decrypted');
      return undefined;
    }
  };
  const found = await store.findPublished(db, regionId, batch);
  const published = new Map(found.map((row) => [store.keyOf(row), row]));
  return batch.filter((request) => {
    const row = published.get(store.keyOf(request));
    request.revision = row?.revision ?? 0;
    if (!row) return request.text !== null;
    return row.failed || request.text !== textOf(request, row.state);
  });
}

function superseded(regionId: number): DriverError {
  return new DriverError(`another worker publishes for region ${regionId}`, {
    customerMessage: 'the region changed its worker',
    retryable: true,
  });
}
