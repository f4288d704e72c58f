/** The load that requests for metrics cause, with a HAProxy that takes its time to answer. */
import { randomUUID } from 'node:crypto';
import { type ClientRequest, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { silentLogger } from '../../platform/log.ts';
import { createExporter } from './exporter.ts';
import type { Host } from './host.ts';
import { testHost, type TestHost } from './test-host.ts';

const READING_MS = 50;
const parts = ['haproxy', 'root'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'requests for metrics', () => {
  let host: TestHost;
  let exporter: ReturnType<typeof createExporter>;
  let asked: string[];
  /** What HAProxy returns. */
  let csv: string;
  const tenants = new Map([
    ['one', '1'],
    ['two', '1'],
    ['other', '2'],
  ]);

  beforeEach(async () => {
    host = testHost();
    asked = [];
    csv = '';
    const ids = [...tenants.keys()];
    const listeners = new Map(ids.map((id) => [id, randomUUID()]));
    const nameOf = (command: string) => ids.find((id) => command.includes(listeners.get(id)!))!;
    exporter = createExporter(
      {
        layout: host.layout,
        specs: new Map(ids.map((id) => [id, { id, tenant: tenants.get(id) }])),
        rendered: new Map(ids.map((id) => [id, { pools: [], endpoints: new Map([[listeners.get(id), []]]) }])),
        process: {
          async ask([command]: string[]) {
            asked.push(nameOf(command!));
            await sleep(READING_MS);
            return csv;
          },
        },
      } as unknown as Host,
      silentLogger,
    );
    await exporter.start();
  });
  afterEach(async () => {
    await exporter.stop();
    host.cleanUp();
  });

  const statusOf = (id: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      request({ socketPath: host.layout.exporterSocket, path: `/${id}` }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode));
      })
        .on('error', reject)
        .end();
    });

  it('share a reading that begins after them', async () => {
    const first = statusOf('one');
    await sleep(READING_MS / 2);
    const statuses = await Promise.all([first, ...Array.from({ length: 20 }, () => statusOf('one'))]);
    expect(new Set(statuses)).toEqual(new Set([200]));
    // Two if all arrive during the first reading.
    expect(asked.length).toBeLessThan(10);
    expect(await statusOf(randomUUID())).toBe(404);
    expect(await statusOf('one?query')).toBe(200);
  });

  it('of clients that do not read the responses are limited for each tenant', async () => {
    csv = `# pxname,svname,type,scur,\n${'listener_x,FRONTEND,0,1,\n'.repeat(10_000)}`;
    const sent: ClientRequest[] = [];
    const statuses = Array.from({ length: 101 }, () => {
      const unread = request({ socketPath: host.layout.exporterSocket, path: '/one' }).end();
      sent.push(unread.on('error', () => undefined));
      return new Promise<number | undefined>((resolve) => unread.on('response', (found) => resolve(found.statusCode)));
    });
    expect((await Promise.all(statuses)).filter((status) => status !== 200)).toEqual([503]);
    expect([await statusOf('two'), await statusOf('other')]).toEqual([503, 200]);
    for (const unread of sent) unread.destroy();
    await expect.poll(() => statusOf('two')).toBe(200);
  });

  it('of one tenant take turns, with pauses, and those of another do not wait', async () => {
    const begun = performance.now();
    const order: string[] = [];
    const requests = ['one', 'two', 'other'].map((id) => statusOf(id).then(() => order.push(id)));
    await Promise.all(requests);
    expect(order.at(-1)).toBe('two');
    expect(performance.now() - begun).toBeGreaterThan(READING_MS * 4 - 5);
  });
});
