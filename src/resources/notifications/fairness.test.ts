/** Deliveries of several clients that wait for the same process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import type { WebhookCall } from '../../drivers/delivery.ts';
import { createSimulatedDeliveryDriver } from '../../drivers/simulated/delivery.ts';
import { transaction } from '../../platform/db.ts';

const called: string[] = [];
const cloud = useCloudyard({
  webhookAllowPrivate: true,
  deliveryDrivers: {
    webhook: {
      ...createSimulatedDeliveryDriver<WebhookCall>('webhook', '', ''),
      real: true,
      async send({ url }) {
        if (url.endsWith('/slow')) await sleep(50);
        called.push(url);
        return { answer: 'ok' };
      },
    },
  },
});

async function clientWith(url: string, webhooks: number) {
  const client = await cloud.newClient();
  const path = `/cloudyard/v1/clients/${client.clientId}/webhooks`;
  for (let i = 0; i < webhooks; i++) await cloud.post(path, { url }, client);
  return client;
}

const issue = ({ clientId }: { clientId: number }) =>
  transaction(cloud.db, (tx) =>
    cloud.services.notifications.issue(tx, {
      ...{ clientId, type: 'quota_threshold', subject: 'x', body: { paragraphs: [] }, data: {} },
    }),
  );

it('are sent to each client in turn, however many another one has', async () => {
  const [slow, quick] = [await clientWith('http://127.0.0.1/slow', 16), await clientWith('http://127.0.0.1/quick', 1)];
  for (let i = 0; i < 5; i++) await issue(slow);
  await issue(quick);
  await expect.poll(() => called, { timeout: 30_000, interval: 10 }).toContain('http://127.0.0.1/quick');
  expect(called.length).toBeLessThan(40);
  await expect.poll(() => called.length, { timeout: 30_000 }).toBe(5 * 16 + 1);
});
