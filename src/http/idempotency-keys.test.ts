import type { AddressInfo } from 'node:net';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../test/harness.ts';

const cloud = useCloudyard({ driver: null });
const shares = '/cloud/v1/file_shares/1/1';
const prices = '/cloud/v1/pricing/1/1/file_shares';
let valid: Record<string, unknown>;
let key: string;
let keys = 0;

beforeAll(async () => {
  const { body } = await cloud.get('/cloud/v1/networks/1/1');
  valid = { name: 'a share', protocol: 'NFS', size: 1, network: { network_id: body.results[0].id } };
});
beforeEach(() => {
  key = `key ${++keys}`;
});

interface Options {
  token?: string;
  key?: string;
}

const post = (path: string, body: unknown, options: Options = {}) =>
  cloud.post(path, body, { token: options.token, headers: { 'idempotency-key': options.key ?? key } });
const count = async () => (await cloud.get(shares)).body.count as number;
const taskCount = async () => (await cloud.get('/cloud/v1/tasks')).body.count as number;

const reused = {
  status: 409,
  body: { exception_class: 'IdempotencyKeyReused' },
  headers: { 'x-should-retry': 'false' },
};
const same = (answer: Answer) => ({ status: answer.status, body: answer.body });

/** A share whose rows are as after its creation on a host, so that rules and extensions are allowed. */
async function shareOnHost(): Promise<string> {
  const { body } = await cloud.post(shares, valid);
  const task = await cloud.get(`/cloud/v1/tasks/${body.tasks[0]}`);
  const [id] = task.body.created_resources.file_shares;
  await cloud.db.$client.query(
    `update file_shares set status = 'available', observed_size = size, observed_generation = generation where id = $1`,
    [id],
  );
  await cloud.db.$client.query(`update tasks set state = 'FINISHED' where resource_id = $1`, [id]);
  return id;
}

describe('a request that is repeated with the same Idempotency-Key', () => {
  it('gets the same response and changes nothing', async () => {
    const first = await post(shares, valid);
    expect(first.status).toBe(200);
    const [before, tasks] = [await count(), await taskCount()];
    for (let i = 0; i < 3; i++) expect(same(await post(shares, valid))).toEqual(same(first));
    expect([await count(), await taskCount()]).toEqual([before, tasks]);
  });

  it('may have the fields of its body in another order', async () => {
    const first = await post(shares, valid);
    const reordered = Object.fromEntries(Object.entries(valid).reverse());
    expect(same(await post(shares, reordered))).toEqual(same(first));
  });

  it('gets the response that was lost when the client disconnected before it', async () => {
    await cloud.app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = cloud.app.server.address() as AddressInfo;
    const before = await count();
    // The request waits for its last row lock while its client disconnects.
    const blocker = await cloud.db.$client.connect();
    await blocker.query('begin');
    await blocker.query(`select from quota_counters where client_id = 1 for update`);
    const client = new AbortController();
    const lost = fetch(`http://127.0.0.1:${port}${shares}`, {
      method: 'POST',
      headers: { authorization: `apikey ${cloud.admin}`, 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(valid),
      signal: client.signal,
    }).then(
      () => 'answered',
      () => 'lost',
    );
    const waiting = async () =>
      (
        await cloud.db.$client.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
      ).rowCount;
    await expect.poll(waiting).toBe(1);
    client.abort();
    expect(await lost).toBe('lost');
    await blocker.query('rollback');
    blocker.release();
    await expect.poll(count).toBe(before + 1);
    const again = await post(shares, valid);
    expect(again).toMatchObject({ status: 200, body: { tasks: [expect.any(String)] } });
    expect((await cloud.get(`/cloud/v1/tasks/${again.body.tasks[0]}`)).status).toBe(200);
    expect(await count()).toBe(before + 1);
  });

  it('is executed once if it is sent ten times concurrently, and all ten get the same response', async () => {
    const before = await count();
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(shares, valid)));
    for (const answer of answers) expect(same(answer)).toEqual({ status: 200, body: answers[0]!.body });
    expect(await count()).toBe(before + 1);
  });

  it('of an update is executed once, though the first request locks the resource for the others', async () => {
    const extension = `${shares}/${await shareOnHost()}/extend`;
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(extension, { size: 2 })));
    for (const answer of answers) expect(same(answer)).toEqual({ status: 200, body: answers[0]!.body });
  });

  it('is executed again after 24 hours, and not before', async () => {
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    const first = await post(shares, valid);
    cloud.clock.advance(24 * 3600);
    expect((await post(shares, valid)).body).toEqual(first.body);
    expect(await post(shares, { ...valid, size: 2 })).toMatchObject(reused);
    cloud.clock.advance(0.001);
    const second = await post(shares, valid);
    expect(second.status).toBe(200);
    expect(second.body).not.toEqual(first.body);
    expect((await post(shares, valid)).body).toEqual(second.body);
    cloud.clock.set(null);
  });

  it('is deleted by the clean-up after 24 hours, and not before', async () => {
    cloud.clock.set(new Date('2026-11-20T10:00:00Z'));
    await post(shares, valid, { key: 'old' });
    cloud.clock.advance(24 * 3600 + 1);
    await post(shares, valid, { key: 'young' });
    await cloud.services.idempotency.deleteExpired(cloud.db);
    const { rows } = await cloud.db.$client.query(
      `select key from idempotency_keys where key in ('old', 'young') order by key`,
    );
    expect(rows).toEqual([{ key: 'young' }]);
    cloud.clock.set(null);
  });
});

describe('a key that was used', () => {
  it('for another body is refused, and changes nothing', async () => {
    await post(shares, valid);
    const before = await count();
    expect(await post(shares, { ...valid, size: 2 })).toMatchObject(reused);
    expect(await post(shares, { ...valid, tags: {} })).toMatchObject(reused);
    expect(await count()).toBe(before);
  });

  it('for another path or another query is refused', async () => {
    await post(shares, valid);
    expect(await post(`${shares}/check_limits`, { size: 1 })).toMatchObject(reused);
    const other = 'acknowledge';
    expect((await post('/cloud/v1/tasks/acknowledge_all?project_id=999', undefined, { key: other })).status).toBe(204);
    expect(await post('/cloud/v1/tasks/acknowledge_all', undefined, { key: other })).toMatchObject(reused);
  });

  it('for another body by a concurrent request is refused with IdempotencyKeyReused', async () => {
    const before = await count();
    const sizes = [1, 2, 3, 4, 5, 6];
    const answers = await Promise.all(sizes.map((size) => post(shares, { ...valid, size })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expect(answer).toMatchObject(reused);
      expect(answer.body).toEqual({
        exception_class: 'IdempotencyKeyReused',
        message: expect.stringContaining(key),
        request_id: expect.any(String),
      });
    }
    expect(await count()).toBe(before + 1);
  });

  it('for a price is refused for another price, also by a concurrent request', async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((size) => post(prices, { size, source: 'new-file-share' })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) expect(answer).toMatchObject(reused);
  });

  it('by one client is unused for another client', async () => {
    const { token, projectId } = await cloud.newClient();
    const body = { name: 'a network' };
    const first = await post('/cloud/v1/networks/1/1', body);
    const second = await post(`/cloud/v1/networks/${projectId}/1`, body, { token });
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.body).not.toEqual(first.body);
    expect((await post('/cloud/v1/networks/1/1', body)).body).toEqual(first.body);
  });

  it('by one token is unused for another token of the client, which does not get the first response', async () => {
    const first = await post(shares, valid);
    const second = await post(shares, valid, { token: await cloud.newToken(1, 'member') });
    expect(second.status).toBe(200);
    expect(second.body).not.toEqual(first.body);
    expect((await post(shares, valid)).body).toEqual(first.body);
  });

  it('by a failed request may be used again for the corrected request', async () => {
    expect((await post(shares, { ...valid, size: 0 })).status).toBe(400);
    expect((await post(shares, { ...valid, size: 999_999_999 })).status).toBe(409);
    const unknown = { network_id: '11111111-1111-4111-8111-111111111111' };
    expect((await post(shares, { ...valid, network: unknown })).status).toBe(400);
    const corrected = await post(shares, valid);
    expect(corrected.status).toBe(200);
    expect((await post(shares, valid)).body).toEqual(corrected.body);
  });
});

describe('a repeated POST returns the same status and body', () => {
  it('for prices and checks of limits, also if the result would differ now', async () => {
    const client = await cloud.newClient();
    const limits = `/cloud/v1/file_shares/${client.projectId}/1/check_limits`;
    const first = await post(limits, { size: 5 }, client);
    expect(same(first)).toEqual({ status: 200, body: {} });
    await cloud.patch(`/cloudyard/v1/clients/${client.clientId}/quotas`, { region_id: 1, sfs_size_limit: 1 });
    expect((await cloud.post(limits, { size: 5 }, client)).body).not.toEqual({});
    expect(same(await post(limits, { size: 5 }, client))).toEqual(same(first));
    const price = await post(prices, { size: 5, source: 'new-file-share' });
    expect(price.status).toBe(200);
    expect(same(await post(prices, { size: 5, source: 'new-file-share' }))).toEqual(same(price));
  });

  it('for an access rule', async () => {
    const path = `${shares}/${await shareOnHost()}/access_rule`;
    const body = { access_mode: 'ro', ip_address: '10.0.0.1' };
    const first = await post(path, body);
    expect(first).toMatchObject({ status: 200, body: { access_to: '10.0.0.1' } });
    expect(same(await post(path, body))).toEqual(same(first));
    expect((await cloud.post(path, body)).status).toBe(409);
    expect((await cloud.get(path)).body.count).toBe(1);
  });

  it('for metadata, with status 204 and no body', async () => {
    const path = `${shares}/${await shareOnHost()}/metadata`;
    for (let i = 0; i < 2; i++) {
      const answer = await post(path, { a: '1' });
      expect(same(answer)).toEqual({ status: 204, body: '' });
      // The operation is deprecated.
      expect(answer.headers).toMatchObject({ deprecation: 'true' });
    }
    const refused = await cloud.post(path, { a: '1' }, { token: null });
    expect(refused).toMatchObject({ status: 401, headers: { deprecation: 'true' } });
    await cloud.delete(`${path}_item?key=a`);
    expect(same(await post(path, { a: '1' }))).toEqual({ status: 204, body: '' });
    expect((await cloud.get(path)).body.count).toBe(0);
  });

  it('for a project, with status 201', async () => {
    const first = await post('/cloud/v1/projects', { name: 'once' });
    expect(first.status).toBe(201);
    expect(same(await post('/cloud/v1/projects', { name: 'once' }))).toEqual(same(first));
    expect((await cloud.post('/cloud/v1/projects', { name: 'once' })).status).toBe(409);
  });

  it('for an acknowledgement and an extension', async () => {
    const id = await shareOnHost();
    const first = await post(`${shares}/${id}/extend`, { size: 2 });
    expect(same(await post(`${shares}/${id}/extend`, { size: 2 }))).toEqual(same(first));
    expect((await cloud.post(`${shares}/${id}/extend`, { size: 2 })).status).toBe(409);
    const task = `/cloud/v1/tasks/${first.body.tasks[0]}/acknowledge`;
    const acknowledged = await post(task, undefined, { key: 'seen' });
    expect(acknowledged.body.acknowledged_at).not.toBe(null);
    expect(same(await post(task, undefined, { key: 'seen' }))).toEqual(same(acknowledged));
  });
});

describe('a key', () => {
  it('may be any text of 1 to 255 characters', async () => {
    for (const text of ['x', 'x'.repeat(255), "'; drop table tokens; --", '{"a":1}']) {
      const first = await post(prices, { size: 1, source: 'new-file-share' }, { key: text });
      expect([text, first.status]).toEqual([text, 200]);
      expect(await post(prices, { size: 2, source: 'new-file-share' }, { key: text })).toMatchObject(reused);
    }
  });

  it('that is empty or longer is rejected with the path Idempotency-Key, and changes nothing', async () => {
    const before = await count();
    for (const text of ['', 'x'.repeat(256)]) {
      const answer = await post(shares, valid, { key: text });
      expect(answer).toMatchObject({ status: 400, body: { errors: [{ path: 'Idempotency-Key' }] } });
    }
    expect(await count()).toBe(before);
  });

  it('that is too long is named with the errors of the body', async () => {
    const long = { key: 'x'.repeat(256) };
    const errorsOf = async (body: object) =>
      (await post(shares, body, long)).body.errors.map((error: { path: string }) => error.path);
    expect(await errorsOf({ ...valid, name: 'x' })).toEqual(['name', 'Idempotency-Key']);
    const reserved = { tags: { 'cloudyard:a': '1' } };
    expect(await errorsOf({ ...valid, ...reserved })).toEqual(['tags.cloudyard:a', 'Idempotency-Key']);
  });

  it('is ignored for methods other than POST', async () => {
    const id = await shareOnHost();
    const headers = { 'idempotency-key': key };
    expect((await cloud.patch(`${shares}/${id}`, { name: 'one' }, { headers })).body.name).toBe('one');
    expect((await cloud.patch(`${shares}/${id}`, { name: 'two' }, { headers })).body.name).toBe('two');
    expect((await cloud.get(shares, { headers })).status).toBe(200);
  });
});
