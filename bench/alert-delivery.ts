/** Time from the create that reaches the threshold to the webhook call, with a grouping window of one second. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { transaction } from '../src/platform/db.ts';
import { startCloudyard } from './cloudyard.ts';
import { quiet } from './quiet.ts';
import { quantile } from './rounds.ts';
import { openServices } from './services.ts';
import type { Row } from './table.ts';
import { createTenants, type Tenant } from './tenants.ts';
import type { Workplace } from './workplace.ts';

const clients = 40;
const rounds = 3;
const betweenMs = 150;
const timeoutMs = 30_000;

export async function alertDelivery(workplace: Workplace): Promise<Row[]> {
  const settings = { CLOUDYARD_NOTIFICATION_WINDOW_SECONDS: '1', CLOUDYARD_WEBHOOK_ALLOW_PRIVATE: '1' };
  const cloudyard = await startCloudyard(workplace, { command: 'start', settings });
  const services = await openServices(workplace, cloudyard);
  const receiver = await openReceiver(workplace);
  const measured: number[][] = [];
  for (let round = 0; round < rounds; round++) {
    const tenants = await createTenants(services, cloudyard, clients);
    for (const { clientId } of tenants) {
      const scope = { clientId, regionId: 1 };
      await transaction(services.db, (tx) => services.quota.setLimits(tx, scope, { sfs_count: 1 }));
      const path = `/cloudyard/v1/clients/${clientId}/webhooks`;
      await cloudyard.request('POST', path, { url: `${receiver.url}/${clientId}` });
    }
    await quiet();
    const under = tenants.map(async (tenant, i) => {
      await sleep(i * betweenMs);
      return cross(cloudyard.url, tenant, receiver.calls);
    });
    measured.push(await Promise.all(under));
  }
  const row = (what: string, q: number, atMost: number): Row => ({
    what: `threshold crossed to webhook called, ${what}`,
    values: measured.map((round) => quantile(round, q) / 1000),
    unit: 's',
    bar: { atMost },
  });
  return [row('p50', 0.5, 2), row('p95', 0.95, 5)];
}

async function cross(url: string, { clientId, create }: Tenant, calls: Map<string, number>): Promise<number> {
  const headers = { ...create.headers, 'content-type': 'application/json' };
  const answer = await fetch(url + create.path, { method: 'POST', headers, body: JSON.stringify(create.body) });
  const crossed = performance.now();
  if (!answer.ok) throw new Error(`create: ${answer.status} ${await answer.text()}`);
  for (;;) {
    const called = calls.get(`/${clientId}`);
    if (called !== undefined) return called - crossed;
    if (performance.now() - crossed > timeoutMs) throw new Error(`no message for client ${clientId}`);
    await sleep(10);
  }
}

async function openReceiver(workplace: Workplace) {
  const calls = new Map<string, number>();
  const server = createServer((request, response) => {
    calls.set(request.url!, performance.now());
    request.resume().once('end', () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  workplace.closing(async () => void server.close());
  return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
