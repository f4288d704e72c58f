/** Another server on the database of a test, with its own caches. */
import { expect } from 'vitest';
import { createApi } from '../src/main/api.ts';
import { readConfiguration } from '../src/main/configuration.ts';
import { createServices } from '../src/main/services.ts';
import type { Clock } from '../src/platform/clock.ts';
import { connect, type ConnectionOptions, type Db } from '../src/platform/db.ts';
import { createKeyring } from '../src/platform/encryption.ts';
import { silentLogger } from '../src/platform/log.ts';
import type { Cloudyard } from './harness.ts';

const files = { regions: 'config/regions.yaml', quotas: 'config/quotas.yaml' };

/** A server without the keys of the installation. */
export async function openServer(connection: ConnectionOptions, clock: Clock) {
  const db = connect({ ...connection, poolSize: 2, log: silentLogger });
  const configuration = readConfiguration(files, silentLogger);
  const services = await createServices({ db, clock, log: silentLogger, configuration, keyring: createKeyring([]) });
  const app = await createApi(services, { log: silentLogger });
  return {
    ...{ db, app },
    async stop(): Promise<void> {
      services.caches.stop();
      await app.close();
      await db.$client.end();
    },
  };
}

export async function openAnotherServer(of: Cloudyard, connection: ConnectionOptions = of.connection) {
  const { db, app, stop } = await openServer(connection, of.clock);
  const status = async (headers: Record<string, string>) =>
    (await app.inject({ url: '/cloud/v1/projects', headers })).statusCode;
  return {
    stop,
    /** The status of a request with this credential. */
    status,

    /** Waits for 401. Call after the revocation: the next read of the revision must be the last that accepts it. */
    async expectRefusal(headers: Record<string, string>): Promise<void> {
      const readsAtAcceptance: number[] = [];
      const reads = countReads(db);
      const poll = async () => {
        const before = reads();
        const found = await status(headers);
        if (found === 200) readsAtAcceptance.push(before);
        return found;
      };
      await expect.poll(poll, { interval: 10 }).toBe(401);
      // The first read may have begun before the change.
      expect(readsAtAcceptance.filter((before) => before > 1)).toEqual([]);
    },
  };
}

/** Counts the reads of the revision (platform/reference-cache.ts) that begin from now on and have ended. */
function countReads({ $client }: Db): () => number {
  let count = 0;
  const query = $client.query.bind($client) as (...args: unknown[]) => Promise<unknown>;
  const counted = async (...args: unknown[]) => {
    const result = await query(...args);
    if ((args[0] as { name?: string }).name === 'revision_read') count += 1;
    return result;
  };
  Object.assign($client, { query: counted });
  return () => count;
}
