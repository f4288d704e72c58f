import { beforeEach, expect, it } from 'vitest';
import { useCloudyard } from '../../test/harness.ts';
import type { DriverStatus } from '../platform/driver-status.ts';
import { createHostAlert } from './host-alert.ts';

const cloud = useCloudyard({ driver: null });
const hour = 3_600_000;
const disk: DriverStatus = { kind: 'data directory', driver: 'filesystem', real: true, healthy: true, detail: 'full' };
let status: DriverStatus;
let now: number;
let operatorId: number;
let check: () => Promise<void>;

beforeEach(async () => {
  [status, now] = [disk, 0];
  ({ operatorId } = await cloud.services.clients.bootstrap());
  const { notifications } = cloud.services;
  const deps = { db: cloud.db, host: 'storage-1', regionIds: [1], notifications, operatorId };
  check = createHostAlert({ ...deps, statuses: () => [status], now: () => now });
});

async function messages(): Promise<any[]> {
  const { body } = await cloud.get(`/cloudyard/v1/clients/${operatorId}/notifications`);
  return body.results.filter(({ type }: { type: string }) => type === 'host_unhealthy');
}

it('notifies the operator once an hour of a data directory below its reserve, and of nothing that recovers at once', async () => {
  const before = (await messages()).length;
  const added = async () => (await messages()).length - before;
  status = { ...disk, healthy: false };
  await check();
  status = disk;
  await check();
  expect(await added()).toBe(0);
  status = { ...disk, healthy: false };
  for (let i = 0; i < 4; i += 1) await check();
  expect(await added()).toBe(1);
  const [message] = await messages();
  expect(message.subject).toBe('Host storage-1: data directory unhealthy');
  now += hour;
  await check();
  expect(await added()).toBe(2);
});
