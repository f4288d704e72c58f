/** Deliveries to receivers that ask for a wait (`Retry-After`). */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../../../test/webhook-receiver.ts';
import { createSimulatedDeliveryDriver } from '../../drivers/simulated/delivery.ts';
import { createWebhookDriver } from '../../drivers/webhook/driver.ts';
import { transaction } from '../../platform/db.ts';

const webhook = createWebhookDriver({ allowPrivate: true, now: () => new Date() });
const cloud = useCloudyard({
  webhookAllowPrivate: true,
  deliveryDrivers: { webhook, email: createSimulatedDeliveryDriver('e-mail', '', '') },
});

let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver();
});
afterAll(() => receiver.stop());

/** Seconds from the last attempt to the next one. */
function waitOf({ attempts, next_attempt_at: next }: { attempts: { at: string }[]; next_attempt_at: string }): number {
  return (Date.parse(next) - Date.parse(attempts.at(-1)!.at)) / 1000;
}

/** Sends a message to the receiver, which refuses it once. Returns the client, and what reads the delivery. */
async function attempted() {
  const client = await cloud.newClient();
  const path = `/cloudyard/v1/clients/${client.clientId}`;
  await cloud.post(`${path}/webhooks`, { url: receiver.url }, client);
  const message = { clientId: client.clientId, subject: 'a message', body: { paragraphs: [] }, data: {} };
  await transaction(cloud.db, (tx) => cloud.services.notifications.issue(tx, { ...message, type: 'quota_threshold' }));
  const delivery = async () => (await cloud.get(`${path}/notifications`, client)).body.results[0].deliveries[0];
  await expect.poll(delivery).toMatchObject({ state: 'pending', attempt_count: 1 });
  return { client, delivery };
}

it.each([
  ['2', 5],
  ['120', 120],
  ['86400', 3600],
])('with Retry-After: %s have their next attempt after %i s', async (retryAfter, seconds) => {
  receiver.answer((response) => void response.writeHead(429, { 'retry-after': retryAfter }).end());
  const { delivery } = await attempted();
  expect(waitOf(await delivery())).toBe(seconds);
});

it('do not wait for a time before the clock was set back', async () => {
  receiver.answer((response) => void response.writeHead(503).end());
  const { client, delivery } = await attempted();
  receiver.answer((response) => void response.writeHead(200).end());
  await cloud.db.$client.query(`update jobs set run_at = now() + interval '1 year' where client_id = $1`, [
    client.clientId,
  ]);
  await expect.poll(delivery).toMatchObject({ state: 'delivered' });
});
