/** The threshold through the API, and crossings of it: each is notified once, together with others of its window. */
import { describe, expect, it } from 'vitest';
import { useCloudyard } from '../../../test/harness.ts';
import type { Configuration } from '../../main/configuration.ts';
import { transaction } from '../../platform/db.ts';
import type { Kind } from '../../quota/kinds.ts';

const twoRegions = (shipped: Configuration): Configuration => {
  const [first] = shipped.regions;
  return { ...shipped, regions: [first!, { ...first!, id: 2, display_name: 'far', vip_range: '127.65.0.0/16' }] };
};
const cloud = useCloudyard({ configuration: twoRegions, notificationWindowSeconds: 1, audit: false });
const { stringify } = JSON;

type Client = Awaited<ReturnType<typeof cloud.newClient>>;
const path = (client: Client) => `/cloud/v2/client_quotas/${client.clientId}/notification_threshold`;
const put = (client: Client, body?: unknown) => cloud.request('PUT', path(client), body, client);
const limit = (client: Client, limits: object) =>
  cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, { region_id: 1, ...limits });

type Amounts = Partial<Record<Kind, number>>;
const reserve = (client: Client, amounts: Amounts, regionId = 1) =>
  transaction(cloud.db, (tx) => cloud.services.quota.reserve(tx, { clientId: client.clientId, regionId }, amounts));
const release = (client: Client, amounts: Amounts) =>
  transaction(cloud.db, (tx) => cloud.services.quota.release(tx, { clientId: client.clientId, regionId: 1 }, amounts));

async function feed(client: Client) {
  return (await cloud.get(`/cloudyard/v1/clients/${client.clientId}/notifications`, client)).body.results;
}

/** Waits until no notification is pending. */
async function settled(client: Client): Promise<void> {
  const waiting = `select from jobs where kind = 'quota_alert' and id = $1`;
  await expect
    .poll(async () => (await cloud.db.$client.query(waiting, [client.clientId])).rowCount, {
      timeout: 30_000,
    })
    .toBe(0);
}

/** Ends the window of the client's crossings. */
async function endWindow({ clientId }: Client): Promise<void> {
  const isWaiting = `kind = 'quota_alert' and id = $1 and locked_by is null`;
  await cloud.db.$client.query(`update jobs set run_at = now() where ${isWaiting}`, [clientId]);
}

async function notified(client: Client): Promise<string[][]> {
  await endWindow(client);
  await settled(client);
  const kinds = (data: Record<string, object> & { regional_quotas: object[] }) => [
    ...Object.keys(data['global_quotas']!),
    ...data.regional_quotas.flatMap((region) => Object.keys(region)),
  ];
  return (await feed(client))
    .map(({ data }: { data: never }) => kinds(data).filter((key) => key.endsWith('_usage')))
    .reverse();
}

async function limited(limits: object = { volume_count_limit: 10 }): Promise<Client> {
  const client = await cloud.newClient();
  await limit(client, limits);
  return client;
}

describe('the threshold', () => {
  it('defaults to 80 with no message sent', async () => {
    const client = await cloud.newClient();
    const { clientId } = client;
    const fallback = { client_id: clientId, threshold: 80, last_message: null, last_sending: null };
    expect(await cloud.get(path(client), client)).toMatchObject({ status: 200, body: fallback });
    expect(await put(client, { threshold: 100 })).toMatchObject({ status: 200, body: { ...fallback, threshold: 100 } });
    expect((await cloud.get(path(client), client)).body).toEqual({ ...fallback, threshold: 100 });
    expect(await put(client, { threshold: 1, last_sending: null, last_message: null })).toMatchObject({
      status: 200,
      body: { threshold: 1 },
    });
    expect(await put(client, {})).toMatchObject({ status: 200, body: fallback });
    await put(client, { threshold: 50 });
    expect((await cloud.delete(path(client), client)).status).toBe(204);
    expect((await cloud.delete(path(client), client)).status).toBe(204);
    expect((await cloud.get(path(client), client)).body).toEqual(fallback);
  });

  it('accepts last_message and last_sending in valid form and ignores them', async () => {
    const client = await cloud.newClient();
    const last_message = {
      global_quotas: { project_count_limit: { limit: 5, usage: 4 }, keypair_count_usage: { limit: 0, usage: 0 } },
      regional_quotas: [
        { region_id: 1, region_name: 'local', sfs_count_limit: { limit: 9_223_372_036_854_776_000, usage: 4 } },
      ],
    };
    const answer = await put(client, { threshold: 70, last_message, last_sending: '2026-11-20T10:00:00Z' });
    expect(answer).toMatchObject({ status: 200, body: { threshold: 70, last_message: null, last_sending: null } });
    expect((await put(client, { threshold: 70, last_sending: '2026-11-20T10:00:00.5' })).status).toBe(200);
  });

  it.each([
    [{ threshold: 0 }, 'threshold'],
    [{ threshold: 101 }, 'threshold'],
    [{ threshold: -1 }, 'threshold'],
    [{ threshold: '80' }, 'threshold'],
    [{ threshold: null }, 'threshold'],
    [{ threshold: 80.5 }, 'threshold'],
    [{ threshold: true }, 'threshold'],
    [{ treshold: 80 }, 'treshold'],
    [{ last_sending: 'yesterday' }, 'last_sending'],
    [{ last_sending: 5 }, 'last_sending'],
    [{ last_message: 'hello' }, 'last_message'],
    [{ last_message: { global_quotas: {} } }, 'last_message.regional_quotas'],
    [{ last_message: { global_quotas: [], regional_quotas: [] } }, 'last_message.global_quotas'],
    [{ last_message: { global_quotas: {}, regional_quotas: {} } }, 'last_message.regional_quotas'],
    [
      { last_message: { global_quotas: {}, regional_quotas: [{ region_id: 1 }] } },
      'last_message.regional_quotas.0.region_name',
    ],
    [
      { last_message: { global_quotas: { sfs_count_usage: { limit: 1, usage: 1 } }, regional_quotas: [] } },
      'last_message.global_quotas.sfs_count_usage',
    ],
    [
      { last_message: { global_quotas: { project_count_usage: 5 }, regional_quotas: [] } },
      'last_message.global_quotas.project_count_usage',
    ],
    [
      { last_message: { global_quotas: { project_count_usage: { limit: -1, usage: 1 } }, regional_quotas: [] } },
      'last_message.global_quotas.project_count_usage.limit',
    ],
    [
      { last_message: { global_quotas: { project_count_usage: { limit: 1 } }, regional_quotas: [] } },
      'last_message.global_quotas.project_count_usage.usage',
    ],
  ])('refuses %j and names %s', async (body, field) => {
    const client = await cloud.newClient();
    const answer = await put(client, body);
    expect([answer.status, answer.body.errors?.map(({ path }: { path: string }) => path)]).toEqual([400, [field]]);
    expect((await cloud.get(path(client), client)).body.threshold).toBe(80);
  });

  it('takes the default of an absent body, names every error, and returns 404 to other clients', async () => {
    const client = await cloud.newClient();
    expect(await put(client)).toMatchObject({ status: 200, body: { threshold: 80 } });
    expect((await put(client, [])).status).toBe(400);
    const both = await put(client, { threshold: 0, last_sending: 1 });
    expect(both.body.errors.map(({ path }: { path: string }) => path)).toEqual(['threshold', 'last_sending']);
    const other = await cloud.newClient();
    expect((await cloud.get(path(client), other)).status).toBe(404);
    expect((await cloud.request('PUT', path(client), { threshold: 5 }, other)).status).toBe(404);
    expect((await cloud.request('PUT', path(client), { threshold: 55 })).body.threshold).toBe(55);
    expect((await cloud.get('/cloud/v2/client_quotas/987654/notification_threshold')).status).toBe(404);
    expect((await cloud.get('/cloud/v2/client_quotas/x/notification_threshold')).status).toBe(400);
    const reader = await cloud.newToken(client.clientId, 'reader');
    expect((await cloud.request('PUT', path(client), {}, { token: reader })).status).toBe(403);
  });
});

describe('a crossing', () => {
  it('is notified when the usage reaches the threshold, and again only after it fell below', async () => {
    const client = await limited();
    await reserve(client, { volume_count: 7 });
    expect(await notified(client)).toEqual([]);
    await reserve(client, { volume_count: 1 });
    expect(await notified(client)).toEqual([['volume_count_usage']]);
    await reserve(client, { volume_count: 1 });
    await release(client, { volume_count: 1 });
    await reserve(client, { volume_count: 2 });
    expect(await notified(client)).toHaveLength(1);
    await release(client, { volume_count: 3 });
    await reserve(client, { volume_count: 3 });
    expect(await notified(client)).toHaveLength(2);
  });

  it('shows in the threshold, with both keys of each kind, and in the feed of a client without addresses', async () => {
    const client = await limited();
    await reserve(client, { volume_count: 9 });
    await settled(client);
    const figure = { limit: 10, usage: 9 };
    const message = {
      global_quotas: {},
      regional_quotas: [{ region_id: 1, region_name: 'local', volume_count_limit: figure, volume_count_usage: figure }],
    };
    const { body } = await cloud.get(path(client), client);
    expect(body).toEqual({
      client_id: client.clientId,
      threshold: 80,
      last_message: message,
      last_sending: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    });
    expect(await feed(client)).toEqual([
      {
        id: expect.any(String),
        type: 'quota_threshold',
        client_id: client.clientId,
        created_at: body.last_sending,
        subject: expect.stringContaining('has reached 80 % of volumes'),
        data: { threshold: 80, ...message },
        deliveries: [],
      },
    ]);
    // A client may send the response back as a request.
    expect((await put(client, { ...body, client_id: undefined })).status).toBe(200);
  });

  it('is combined with other crossings of its window, regional and global, in one message', async () => {
    const client = await limited({ volume_count_limit: 10, volume_size_limit: 100 });
    const far = { region_id: 2, image_count_limit: 2 };
    await limit(client, far);
    await cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, { keypair_count_limit: 1 });
    await reserve(client, { volume_count: 8, volume_size: 80 });
    await reserve(client, { image_count: 2 }, 2);
    await reserve(client, { keypair_count: 1 }, 0);
    expect(await notified(client)).toEqual([
      ['keypair_count_usage', 'volume_count_usage', 'volume_size_usage', 'image_count_usage'],
    ]);
    const [{ data, subject }] = await feed(client);
    expect(data.regional_quotas.map(({ region_name }: { region_name: string }) => region_name)).toEqual([
      'local',
      'far',
    ]);
    expect(subject).toContain('4 quotas');
  });

  it('can be caused by lowering a limit or the threshold', async () => {
    const client = await limited();
    await reserve(client, { volume_count: 5 });
    await limit(client, { volume_count_limit: 6 });
    expect(await notified(client)).toHaveLength(1);
    await limit(client, { volume_count_limit: 2 });
    expect(await notified(client)).toHaveLength(1);
    await limit(client, { volume_count_limit: 100 });
    await limit(client, { volume_count_limit: 0 });
    expect(await notified(client)).toHaveLength(2);
    await limit(client, { volume_count_limit: 10 });
    await put(client, { threshold: 51 });
    expect(await notified(client)).toHaveLength(2);
    await put(client, { threshold: 50 });
    expect(await notified(client)).toHaveLength(3);
    await put(client, { threshold: 40 });
    expect(await notified(client)).toHaveLength(3);
    await cloud.delete(path(client), client);
    await put(client, { threshold: 50 });
    expect(await notified(client)).toHaveLength(4);
  });

  it('of a limit of zero requires usage', async () => {
    const client = await limited({ volume_count_limit: 0 });
    await put(client, { threshold: 2 });
    await limit(client, { image_count_limit: 0 });
    expect(await notified(client)).toEqual([]);
  });

  it('of 2 % and of 100 % is exact', async () => {
    const client = await limited({ volume_size_limit: 1000 });
    await put(client, { threshold: 100 });
    await reserve(client, { volume_size: 999 });
    expect(await notified(client)).toEqual([]);
    await reserve(client, { volume_size: 1 });
    expect(await notified(client)).toHaveLength(1);
    const other = await limited({ volume_size_limit: 1000 });
    await put(other, { threshold: 2 });
    await reserve(other, { volume_size: 19 });
    expect(await notified(other)).toEqual([]);
    await reserve(other, { volume_size: 1 });
    expect(await notified(other)).toHaveLength(1);
  });

  it('that is rolled back is not notified', async () => {
    const client = await limited();
    await transaction(cloud.db, async (tx) => {
      await cloud.services.quota.reserve(tx, { clientId: client.clientId, regionId: 1 }, { volume_count: 9 });
      throw new Error('a crash');
    }).catch(() => undefined);
    expect(await notified(client)).toEqual([]);
    await expect(reserve(client, { volume_count: 11 })).rejects.toMatchObject({ code: 'QuotaExceeded' });
    expect(await notified(client)).toEqual([]);
  });

  it('by fifty parallel reservations is notified once, with the final figures', async () => {
    const client = await limited({ volume_count_limit: 50 });
    await Promise.all(Array.from({ length: 50 }, () => reserve(client, { volume_count: 1 })));
    expect(await notified(client)).toEqual([['volume_count_usage']]);
    const [{ data }] = await feed(client);
    expect(data.regional_quotas[0].volume_count_usage).toEqual({ limit: 50, usage: 50 });
  });

  it('that fell below before its window ended is notified with the figures of the crossing', async () => {
    const client = await limited();
    await reserve(client, { volume_count: 8 });
    await release(client, { volume_count: 8 });
    expect(await notified(client)).toHaveLength(1);
    const [{ data }] = await feed(client);
    expect(data.regional_quotas[0].volume_count_usage).toEqual({ limit: 10, usage: 8 });
  });

  it('below a threshold that was raised in its window is not notified', async () => {
    const client = await limited({ volume_count_limit: 10, registry_count_limit: 10 });
    await put(client, { threshold: 20 });
    await reserve(client, { volume_count: 3, registry_count: 9 });
    await put(client, { threshold: 80 });
    expect(await notified(client)).toEqual([['registry_count_usage']]);
  });

  it('is detected by a reservation while the threshold is being lowered', async () => {
    for (let round = 0; round < 8; round++) {
      const client = await limited();
      await reserve(client, { volume_count: 4 });
      await Promise.all([put(client, { threshold: 50 }), reserve(client, { volume_count: 1 })]);
      expect([round, await notified(client)]).toEqual([round, [['volume_count_usage']]]);
    }
  }, 60_000);

  it('whose job was lost is still notified', async () => {
    const client = await limited();
    await reserve(client, { volume_count: 9 });
    await cloud.db.$client.query(`delete from jobs where kind = 'quota_alert' and id = $1`, [client.clientId]);
    expect(await feed(client)).toEqual([]);
    await cloud.services.quota.crossings.requeueLost(cloud.db);
    expect(await notified(client)).toEqual([['volume_count_usage']]);
  });

  it('waits for the process with a mail server if this one has none', async () => {
    const client = await limited();
    await cloud.patch(`/cloudyard/v1/clients/${client.clientId}`, { emails: ['a@example.com'] }, client);
    const heartbeat = () =>
      cloud.db.$client.query(
        `insert into workers (id, host, pid, region_ids, drivers, started_at, seen_at)
         values ('another', 'another', 1, '{}', '[{"driver": "smtp", "real": true}]', now(), now())
         on conflict (id) do update set seen_at = now()`,
      );
    await heartbeat();
    await reserve(client, { volume_count: 9 });
    await settled(client);
    const attempted = async () => {
      await heartbeat();
      return (await cloud.db.$client.query(`select from jobs where kind = 'deliver' and attempts > 0`)).rowCount;
    };
    await expect.poll(attempted, { timeout: 30_000 }).toBe(1);
    expect((await feed(client))[0].deliveries).toMatchObject([{ state: 'pending', attempt_count: 0 }]);
    await cloud.db.$client.query(`delete from workers where id = 'another'`);
    await cloud.db.$client.query(`update jobs set run_at = now() where locked_by is null`);
    const state = async () => (await feed(client))[0].deliveries[0].state;
    await expect.poll(state, { timeout: 30_000 }).toBe('simulated');
  });

  it('by a created network is notified', async () => {
    const client = await limited({ subnet_count_limit: 2, network_count_limit: 2 });
    await cloud.post(`/cloud/v1/networks/${client.projectId}/1`, { name: 'another' }, client);
    expect(await notified(client)).toEqual([['network_count_usage']]);
    expect(stringify(await feed(client))).toContain('"network_count_limit":{"limit":2,"usage":2}');
  });

  it('is reported after an earlier message of the client, even if two processes report at once', async () => {
    const client = await limited();
    const { crossings } = cloud.services.quota;
    await reserve(client, { volume_count: 9 });
    const [taken, release] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
    const first = transaction(cloud.db, async (tx) => {
      taken.resolve((await crossings.take(tx, client.clientId)).length);
      await release.promise;
      await crossings.recordMessage(tx, client.clientId, { written: 'first' }, cloud.clock.now());
    });
    expect(await taken.promise).toBe(1);
    let hasEnded = false;
    const second = cloud.services.thresholds.notify(client.clientId).then(() => (hasEnded = true));
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%quota_counters%'`;
    const isWaiting = async () => (await cloud.db.$client.query(waiting)).rowCount! > 0;
    await expect.poll(isWaiting, { timeout: 30_000 }).toBe(true);
    expect(hasEnded).toBe(false);
    release.resolve();
    await Promise.all([first, second]);
    const threshold = await crossings.threshold(cloud.db, client.clientId);
    expect(threshold?.lastMessage).toEqual({ written: 'first' });
    expect(await feed(client)).toEqual([]);
  });
});
