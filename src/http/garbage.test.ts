/** Malformed requests get a 4xx error body, never a 500. Regression tests for requests that once caused a 500. */
import { Agent, type IncomingHttpHeaders, request as httpRequest } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, useCloudyard } from '../../test/harness.ts';

const cloud = useCloudyard({ driver: null });
const tasks = '/cloud/v1/tasks';

function expectRefused({ status, body, headers }: Answer, path?: string): void {
  expect(status).toBe(400);
  expect(body).toMatchObject({ exception_class: 'InvalidInput', request_id: headers['x-request-id'] });
  expect(body.message).toBeTruthy();
  if (path !== undefined) expect(body.errors[0].path).toBe(path);
}

describe('a path', () => {
  it.each(['%ff', '%', '%zz', '%E0%A4%A', 'a'.repeat(501)])('with the component %s is rejected', async (part) => {
    expectRefused(await cloud.get(`${tasks}/${part}`));
    expectRefused(await cloud.get(`/cloud/v1/file_shares/1/1/${part}`));
    expectRefused(await cloud.delete(`/cloud/v1/file_shares/1/1/${part}`));
  });
});

it('a path below the API reference that does not exist is not found', async () => {
  for (const path of ['/docs/none', '/docs/js/none.js', '/docs/%2e%2e/none']) {
    expect(await cloud.get(path)).toMatchObject({ status: 404, body: { exception_class: 'NotFound' } });
  }
});

describe('a query', () => {
  it.each([
    '2016-12-31T23:59:60Z',
    '1997-01-01T00:59:60+01:00',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59-23:59',
    '2026-02-30T00:00:00Z',
    '2026-01-01T00:00:00+5',
  ])('for tasks since %s is rejected, because the date does not exist or cannot be stored', async (instant) => {
    for (const name of ['from_timestamp', 'to_timestamp']) {
      expectRefused(await cloud.get(`${tasks}?${new URLSearchParams({ [name]: instant })}`), name);
    }
  });

  it.each(['2026-01-01T00:00:00+05', '2026-01-01T00:00:00+0500', '2026-01-01 00:00:00', '2026-01-01t00:00:00z'])(
    'for tasks since %s is accepted',
    async (instant) => {
      const { status } = await cloud.get(`${tasks}?${new URLSearchParams({ from_timestamp: instant })}`);
      expect(status).toBe(200);
    },
  );

  it.each(['{"a\\u0000":"b"}', '{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"\\udfff":"x"}'])(
    'for tags %s is rejected, because such a tag cannot be stored',
    async (pairs) => {
      for (const name of ['tag_key_value', 'metadata_kv']) {
        const query = new URLSearchParams({ [name]: pairs });
        expectRefused(await cloud.get(`/cloud/v1/networks/1/1?${query}`), name);
        expectRefused(await cloud.get(`/cloud/v1/subnets/1/1?${query}`), name);
      }
    },
  );
});

describe('a body', () => {
  const deep = (depth: number, inner = '') => `${'['.repeat(depth)}${inner}${']'.repeat(depth)}`;
  const post = (path: string, payload: string, key: string) =>
    cloud.post(path, payload, { headers: { 'content-type': 'application/json', 'idempotency-key': key } });

  it('that is nested too deeply is rejected, also if its operation has no schema', async () => {
    for (const path of [`${tasks}/acknowledge_all`, `${tasks}/acknowledge`, '/cloud/v1/file_shares/1/1']) {
      expectRefused(await post(path, deep(20_000), 'deep'));
      expectRefused(await post(path, `{"a":${deep(60)}}`, 'deep'));
      expectRefused(await post(path, `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`, 'deep'));
    }
  });

  it('may contain brackets in strings, next to escaped quotes and backslashes', async () => {
    const description = `\\"${'[{'.repeat(100)}\\\\`;
    const made = await cloud.post('/cloud/v1/projects', { name: 'brackets', description });
    expect(made).toMatchObject({ status: 201, body: { description } });
  });
});

describe('a connection', () => {
  let port: number;
  beforeAll(async () => {
    await cloud.app.listen({ host: '127.0.0.1', port: 0 });
    port = (cloud.app.server.address() as AddressInfo).port;
  });

  /** Sends bytes and returns the response once the server closes the connection. */
  async function answerTo(bytes: string | Buffer): Promise<Answer> {
    const socket = connect(port, '127.0.0.1');
    socket.write(bytes);
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n');
    const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1];
    const headers = { 'x-request-id': header('x-request-id'), 'x-should-retry': header('x-should-retry') };
    return { status: Number(head.split(' ')[1]), body: JSON.parse(body), headers };
  }

  it('gets an error body that names the header Host, which HTTP/1.1 requires once', async () => {
    const answer = await answerTo('GET /healthz HTTP/1.1\r\nX: y\r\n\r\n');
    expectRefused(answer, 'Host');
    expectRefused(await answerTo('GET /healthz HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n'), 'Host');
    expect(await answerTo('GET /healthz HTTP/1.0\r\n\r\n')).toMatchObject({ status: 200 });
  });

  it('gets an error body that names the header Expect, if its value is unknown', async () => {
    expectRefused(await answerTo('GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n'), 'Expect');
  });

  it.each(['gzip, chunked', 'gzip,chunked', 'identity, chunked', 'x, chunked', 'gzip\r\nTransfer-Encoding: chunked'])(
    'gets 501 for the transfer codings %j, also without a body to read',
    async (codings) => {
      for (const line of ['POST /cloud/v1/projects', 'GET /healthz']) {
        const head = `${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: ${codings}\r\n\r\n`;
        const answer = await answerTo(`${head}2\r\n{}\r\n0\r\n\r\n`);
        expect(answer.headers['x-should-retry']).toBe('false');
        const errors = [
          { path: 'Transfer-Encoding', message: 'must be chunked; other transfer codings are not supported' },
        ];
        expect(answer).toMatchObject({ status: 501, body: { exception_class: 'InvalidInput', errors } });
      }
    },
  );

  it.each(['chunked', 'Chunked', ', chunked'])('accepts the transfer coding %j', async (coding) => {
    const head = `GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: ${coding}\r\n\r\n`;
    expect(await answerTo(`${head}0\r\n\r\n`)).toMatchObject({ status: 200 });
  });

  it.each([
    ['random bytes', 400, Buffer.from([0, 255, 254, 13, 10, 13, 10])],
    ['a TLS ClientHello', 400, Buffer.from('160301020001000001fc0303', 'hex')],
    [
      'two Content-Length headers',
      400,
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    ],
    ['a header of 30 KB', 431, `GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(30_000)}\r\n\r\n`],
    ['a query of 30 KB', 431, `GET /healthz?${'x'.repeat(30_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
  ])('gets an error body for %s', async (_what, status, bytes) => {
    const answer = await answerTo(bytes);
    expect(answer).toMatchObject({ status, body: { exception_class: 'InvalidInput', errors: [{ path: '' }] } });
    expect(answer.body.request_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(answer.headers['x-request-id']).toBe(answer.body.request_id);
  });

  it('gets 413 for each body of 2 MiB, and stays open', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const send = (path: string, payload?: string) =>
      new Promise<{ status?: number; headers: IncomingHttpHeaders; port?: number }>((resolve, reject) => {
        const headers = { authorization: `apikey ${cloud.admin}`, 'content-type': 'application/json' };
        const request = httpRequest({ port, path, agent, headers, method: payload ? 'POST' : 'GET' }, (response) => {
          const { statusCode: status, headers: answered } = response;
          const from = request.socket?.localPort;
          void text(response).then(() => resolve({ status: status!, headers: answered, port: from! }), reject);
        });
        request.on('error', reject).end(payload);
      });
    const first = await send('/healthz');
    for (let i = 0; i < 10; i++) {
      const refused = await send('/cloud/v1/projects', `{"name":"${'x'.repeat(2 * 1024 * 1024)}"}`);
      expect(refused).toMatchObject({ status: 413, port: first.port });
    }
    expect(await send('/healthz')).toMatchObject({ status: 200, port: first.port });
    agent.destroy();
  });
});
