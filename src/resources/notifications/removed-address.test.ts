/** Deliveries to an e-mail address that the client has removed. */
import { expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import type { Email } from '../../drivers/delivery.ts';
import { createSimulatedDeliveryDriver } from '../../drivers/simulated/delivery.ts';
import { createWebhookDriver } from '../../drivers/webhook/driver.ts';
import { DriverError } from '../../errors/driver-error.ts';
import { transaction } from '../../platform/db.ts';

const mailed: string[] = [];
const cloud = useCloudyard({
  deliveryDrivers: {
    webhook: createWebhookDriver({ allowPrivate: true, now: () => new Date() }),
    email: {
      ...createSimulatedDeliveryDriver<Email>('e-mail', '', ''),
      real: true,
      async send({ to }) {
        mailed.push(to);
        throw new DriverError('450', { customerMessage: '450 try later', retryable: true });
      },
    },
  },
});

it('end with the next attempt, and cannot be repeated', async () => {
  const client = await cloud.newClient();
  const path = `/cloudyard/v1/clients/${client.clientId}`;
  await cloud.patch(path, { emails: ['kept@example.com', 'removed@example.com'] }, client);
  const message = { clientId: client.clientId, subject: 'a message', body: { paragraphs: [] }, data: {} };
  const id = await transaction(cloud.db, (tx) =>
    cloud.services.notifications.issue(tx, { ...message, type: 'quota_threshold' }),
  );
  const deliveries = async () => (await cloud.get(`${path}/notifications/${id}`, client)).body.deliveries;
  const statesAfter = async (attempts: number) =>
    (await deliveries()).map((one: any) => one.attempt_count === attempts && one.state);
  await expect.poll(() => statesAfter(1)).toEqual(['pending', 'pending']);

  await cloud.patch(path, { emails: ['Kept@example.com'] }, client);
  await cloud.db.$client.query('update jobs set run_at = now() where locked_by is null');
  await expect.poll(() => statesAfter(2)).toEqual(['pending', 'failed']);
  const [kept, removed] = await deliveries();
  expect(removed.attempts[1].answer).toBe('the address was removed');
  expect(mailed.toSorted()).toEqual(['kept@example.com', 'kept@example.com', 'removed@example.com']);

  const replay = (delivery: { id: string }) =>
    cloud.post(`${path}/notifications/${id}/deliveries/${delivery.id}/replay`, undefined, client);
  expect(await replay(removed)).toMatchObject({ status: 409, body: { message: 'the address was removed' } });
  expect((await replay(kept)).status).toBe(200);
});
