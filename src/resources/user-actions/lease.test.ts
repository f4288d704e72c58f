/** The lease of a subscription: one process at a time calls its receiver. */
import { expect, it, onTestFinished } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { startWebhookReceiver } from '../../../test/webhook-receiver.ts';
import { startDeliveries } from './test-deliveries.ts';

const cloud = useCloudyard({ driver: null, webhookAllowPrivate: true });

function startProcess() {
  const deliveries = startDeliveries(cloud);
  onTestFinished(deliveries.stop);
  return deliveries;
}

it.each([
  ['10 minutes', 0],
  // Written before the clock of PostgreSQL was set back.
  ['1 year', 2],
])('that ends in %s: calls of the receiver: %i', async (busyFor, calls) => {
  const receiver = await startWebhookReceiver();
  onTestFinished(receiver.stop);
  const client = await cloud.newClient();
  const header = { auth_header_name: 'X-Key', auth_header_value: 'the key' };
  await cloud.post('/cloud/v1/user_actions/subscribe', { url: receiver.url, ...header }, client);
  for (const name of ['one', 'two']) await cloud.post('/cloud/v1/projects', { name }, client);
  await cloud.db.$client.query(
    'update user_action_subscriptions set busy_until = now() + $2::interval where client_id = $1',
    [client.clientId, busyFor],
  );
  const { deliverDue, stop } = startProcess();
  await deliverDue();
  if (calls > 0) await expect.poll(() => receiver.calls.length).toBe(calls);
  await stop();
  expect(receiver.calls).toHaveLength(calls);
});

it('stays with its process after a batch without calls, although an action is replayed', async () => {
  const receiver = await startWebhookReceiver();
  onTestFinished(receiver.stop);
  const client = await cloud.newClient();
  const header = { auth_header_name: 'X-Key', auth_header_value: 'the key' };
  await cloud.post('/cloud/v1/user_actions/subscribe', { url: receiver.url, ...header }, client);
  // With the subscription, one batch of entries that are not user actions.
  for (let i = 0; i < 7; i++) {
    const webhook = { url: `${receiver.url}/${i}` };
    expect((await cloud.post(`/cloudyard/v1/clients/${client.clientId}/webhooks`, webhook, client)).status).toBe(201);
  }
  await cloud.post('/cloud/v1/projects', { name: 'slow' }, client);
  await cloud.db.$client.query('update user_action_subscriptions set failures = 3 where client_id = $1', [
    client.clientId,
  ]);
  receiver.answer(() => {});
  await startProcess().deliverDue();
  await expect.poll(() => receiver.calls.length).toBe(1);
  const { id } = (await cloud.get('/cloud/v1/user_actions?limit=1', client)).body.results[0];
  expect((await cloud.post(`/cloudyard/v1/user_actions/${id}/delivery/replay`, undefined, client)).status).toBe(200);
  const leased = await cloud.db.$client.query(
    'select busy_until > now() as is_leased from user_action_subscriptions where client_id = $1',
    [client.clientId],
  );
  expect(leased.rows).toEqual([{ is_leased: true }]);
  const other = startProcess();
  await other.deliverDue();
  await other.stop();
  expect(receiver.calls).toHaveLength(1);
});
