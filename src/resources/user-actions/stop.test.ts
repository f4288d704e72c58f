/** Deliveries of user actions by a process that stops. */
import { expect, it, onTestFinished } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import { startWebhookReceiver } from '../../../test/webhook-receiver.ts';
import { startDeliveries } from './test-deliveries.ts';

const cloud = useCloudyard({ driver: null, webhookAllowPrivate: true });

it('repeat only the interrupted call: what the receiver has accepted is recorded', async () => {
  const receiver = await startWebhookReceiver();
  onTestFinished(receiver.stop);
  const client = await cloud.newClient();
  const header = { auth_header_name: 'X-Key', auth_header_value: 'the key' };
  await cloud.post('/cloud/v1/user_actions/subscribe', { url: receiver.url, ...header }, client);
  const names = ['first', 'second', 'third', 'fourth'];
  for (const name of names) await cloud.post('/cloud/v1/projects', { name }, client);
  const called = () => receiver.calls.map(({ body }) => JSON.parse(body).resources[0].search_field);
  receiver.answer((response, { body }) => {
    if (!body.includes('second')) response.writeHead(200).end();
  });
  let responses = 0;
  const first = startDeliveries(cloud, { onAttempt: () => void (responses += 1) });
  await first.deliverDue();
  await expect.poll(() => called().toSorted()).toEqual(names.toSorted());
  await expect.poll(() => responses).toBe(3);
  const acknowledged = async () =>
    (await cloud.get('/cloud/v1/user_actions?api_group=project&order_by=asc', client)).body.results.map(
      (action: { acknowledged: boolean }) => action.acknowledged,
    );
  await first.stop();
  expect(await acknowledged()).toEqual([true, false, true, true]);

  receiver.answer();
  const second = startDeliveries(cloud);
  await second.deliverDue();
  await second.idle();
  await second.stop();
  expect(called().slice(names.length)).toEqual(['second']);
  expect(await acknowledged()).toEqual([true, true, true, true]);
});

it('keep the number of failures of a receiver when all calls are interrupted', async () => {
  const receiver = await startWebhookReceiver();
  onTestFinished(receiver.stop);
  const client = await cloud.newClient();
  const header = { auth_header_name: 'X-Key', auth_header_value: 'the key' };
  await cloud.post('/cloud/v1/user_actions/subscribe', { url: receiver.url, ...header }, client);
  await cloud.post('/cloud/v1/projects', { name: 'interrupted' }, client);
  const sql = (text: string) => cloud.db.$client.query(text, [client.clientId]);
  await sql('update user_action_subscriptions set failures = 3 where client_id = $1');
  receiver.answer(() => {});
  const deliveries = startDeliveries(cloud);
  await deliveries.deliverDue();
  await expect.poll(() => receiver.calls.length).toBe(1);
  await deliveries.stop();
  const { rows } = await sql('select failures from user_action_subscriptions where client_id = $1');
  expect(rows).toEqual([{ failures: 3 }]);
});
