/** User actions, exports and missed runs with real processes, also when these are killed. */
import { afterEach, expect, it } from 'vitest';
import { openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../webhook-receiver.ts';

const timeout = { timeout: 300_000 };
const settings = {
  CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
  CLOUDYARD_WEBHOOK_ALLOW_PRIVATE: '1',
  CLOUDYARD_SCHEDULE_LATE_SECONDS: '1',
};

let yard: Yard;
let receiver: WebhookReceiver | undefined;
afterEach(async () => {
  yard?.cleanUp();
  await receiver?.stop();
});

it('a subscriber gets every action although the server is killed while it delivers', timeout, async () => {
  receiver = await startWebhookReceiver();
  yard = await openYard(settings);
  let server = await yard.start(['start']);
  const subscription = { url: receiver.url, auth_header_name: 'X-Key', auth_header_value: 'the key' };
  expect((await yard.post('/cloud/v1/user_actions/subscribe', subscription)).status).toBe(204);
  // Some calls are answered, some fail, some hang until the process dies.
  let calls = 0;
  receiver.answer((response) => {
    calls += 1;
    if (calls % 3 === 0) return;
    response.writeHead(calls % 3 === 1 ? 200 : 500).end();
  });
  const names: string[] = [];
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 10; i++) {
      const name = `project ${round} ${i}`;
      if ((await yard.post('/cloud/v1/projects', { name })).status < 300) names.push(name);
    }
    await until(() => calls > round * 4, 60, 'calls');
    await server.kill();
    server = await yard.start(['start']);
  }
  receiver.answer();
  const arrived = () => {
    const seen = receiver!.calls.map(({ body }) => JSON.parse(body));
    return new Set(seen.flatMap(({ resources }) => resources.map((one: any) => one.search_field)));
  };
  await until(() => names.every((name) => arrived().has(name)), 180, 'every action');
  expect(names).toHaveLength(30);
  for (const { headers, body } of receiver.calls) {
    expect(headers).toMatchObject({ 'cloudyard-id': JSON.parse(body).id, 'x-key': 'the key' });
  }
  const list = async () =>
    (await yard.get('/cloud/v1/user_actions?api_group=project&action_type=create&limit=30')).body.results;
  await until(async () => (await list()).every((one: any) => one.acknowledged), 60, 'all to be acknowledged');

  const jsonl = await yard.run(['audit', 'export', '--operation', 'createProject']);
  expect(jsonl).toMatchObject({ code: 0, stderr: '' });
  expect(
    jsonl.stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).operation),
  ).toEqual(Array.from({ length: 30 }, () => 'createProject'));
  const csv = await yard.run(['audit', 'export', '--format', 'csv', '--client', '1', '--table', 'projects']);
  expect(csv.stdout).toMatch(/^id,at,operation,.*\r\n\d+,/);
  expect(await yard.run(['audit', 'export', '--format', 'xml'])).toMatchObject({ code: 2 });
  expect(await yard.run(['audit', 'export', '--from', 'yesterday'])).toMatchObject({ code: 2 });
});

it('a server notices and reports that no worker runs a schedule', timeout, async () => {
  yard = await openYard(settings);
  await yard.start(['serve']);
  const schedules = [{ type: 'interval', minutes: 1 }];
  const policy = { action: 'volume_snapshot', name: 'each minute', schedules };
  expect((await yard.post('/cloud/v1/lifecycle_policy/1/1', policy)).status).toBe(200);
  await yard.sql(`update lifecycle_policy_schedules set next_run_at = now() - interval '1 minute'`);
  const missed = async () =>
    (await yard.get('/cloudyard/v1/clients/1/notifications')).body.results.filter(
      ({ type }: { type: string }) => type === 'lifecycle_policy_run_missed',
    );
  await until(async () => (await missed()).length > 0, 60, 'the notification');
  expect((await missed())[0].data).toMatchObject({ policy_name: 'each minute', late_count: 1 });
  const metrics = async () => (await yard.get('/metrics')).body as unknown as string;
  expect(String(await metrics())).toMatch(/^cloudyard_schedules_late 1$/m);
  await yard.start(['worker', '--region', '1']);
  await until(async () => /^cloudyard_schedules_late 0$/m.test(String(await metrics())), 60, 'the recovery');
  expect(await missed()).toHaveLength(1);
});
