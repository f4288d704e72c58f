/** User actions whose receiver asks for a wait (`Retry-After`). */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../../../test/webhook-receiver.ts';
import { startDeliveries } from './test-deliveries.ts';

const cloud = useCloudyard({ driver: null, webhookAllowPrivate: true });

let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver();
});
afterAll(() => receiver.stop());
beforeEach(() => {
  receiver.calls.length = 0;
});

/** A client with a subscription and this number of actions. */
async function newSubscriber(actions: number): Promise<Awaited<ReturnType<typeof cloud.newClient>>> {
  const client = await cloud.newClient();
  const header = { auth_header_name: 'X-Key', auth_header_value: 'the key' };
  await cloud.post('/cloud/v1/user_actions/subscribe', { url: receiver.url, ...header }, client);
  for (let i = 0; i < actions; i++) await cloud.post('/cloud/v1/projects', { name: `action ${i}` }, client);
  return client;
}

async function deliverUserActions(): Promise<void> {
  const deliveries = startDeliveries(cloud);
  await deliveries.deliverDue();
  await deliveries.idle();
  await deliveries.stop();
}

/** Seconds from the last attempt to the next one. */
function waitOf({ attempts, next_attempt_at: next }: { attempts: { at: string }[]; next_attempt_at: string }): number {
  return (Date.parse(next) - Date.parse(attempts.at(-1)!.at)) / 1000;
}

it('are not sent again for as long as the receiver asks', async () => {
  receiver.answer((response) => void response.writeHead(503, { 'retry-after': '120' }).end());
  const client = await newSubscriber(1);
  await deliverUserActions();
  const { id } = (await cloud.get('/cloud/v1/user_actions?limit=1', client)).body.results[0];
  const delivery = await cloud.get(`/cloudyard/v1/user_actions/${id}/delivery`, client);
  expect(delivery.body).toMatchObject({ state: 'pending', failures: 1 });
  expect(waitOf(delivery.body)).toBeCloseTo(120, -1);
});

it.each([
  ['nothing', '120', 120],
  ['action 3', '120', 120],
  ['action 3', '86400', 3600],
])(
  'are not sent for as long as a response asks, if the receiver accepts %s and Retry-After is %s, until one is replayed',
  async (accepted, retryAfter, seconds) => {
    receiver.answer((response, { body }) => {
      const status = body.includes(accepted) ? 200 : 429;
      response.writeHead(status, { ...(status === 429 && { 'retry-after': retryAfter }) }).end();
    });
    const client = await newSubscriber(10);
    for (let i = 0; i < 2; i++) await deliverUserActions();
    // A batch is eight actions, and the subscription itself, the first one, is not sent.
    expect(receiver.calls).toHaveLength(7);
    const { rows } = await cloud.db.$client.query(
      'select extract(epoch from busy_until - now())::float8 as rest from user_action_subscriptions where client_id = $1',
      [client.clientId],
    );
    expect(rows[0].rest).toBeGreaterThan(seconds - 30);
    expect(rows[0].rest).toBeLessThanOrEqual(seconds);
    const { id } = (await cloud.get('/cloud/v1/user_actions?limit=1', client)).body.results[0];
    await cloud.post(`/cloudyard/v1/user_actions/${id}/delivery/replay`, undefined, client);
    await deliverUserActions();
    expect(receiver.calls).toHaveLength(10);
  },
);
