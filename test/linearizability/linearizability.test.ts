/**
 * Histories of concurrent requests of several clients to two servers, one of which is killed meanwhile: each must be
 * linearizable.
 *
 * TEST_HISTORIES: the number of histories of each kind (6).
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRandom, type Random } from '../model/random.ts';
import { type HttpAnswer, httpClient, type HttpClient } from '../http-client.ts';
import { freePort } from '../free-port.ts';
import { bootstrapToken, openYard, type Running, type Yard } from '../processes.ts';
import { check, type Operation, type Specification, textOf } from './checker.ts';
import {
  type ClaimInput,
  claimSpecification,
  type KeysInput,
  keysSpecification,
  type LockInput,
  lockSpecification,
  type NameInput,
  nameSpecification,
  type QuotaInput,
  quotaSpecification,
  type Result,
  type TagsInput,
  tagsSpecification,
} from './specifications.ts';

const histories = Number(process.env['TEST_HISTORIES'] ?? 6);
const clients = 6;
const operationsOfClient = 12;
const timeout = { timeout: 120_000 + histories * 30_000 };

let yard: Yard;
let servers: HttpClient[];
let second: Running;
let secondPort: number;

beforeAll(async () => {
  yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_LOG_LEVEL: 'warn' });
  await yard.start(['serve']);
  await yard.start(['worker', '--region', '1']);
  secondPort = await freePort();
  second = await startSecond();
  servers = [yard, httpClient(`http://127.0.0.1:${secondPort}`, bootstrapToken)];
  // Two networks for each number of histories, which stay.
  const limits = { region_id: 1, network_count_limit: 100 + 2 * histories };
  expect(await yard.insist('PATCH', '/cloudyard/v1/clients/1/quotas', limits)).toMatchObject({ status: 200 });
});
afterAll(() => yard?.cleanUp());

const startSecond = () =>
  yard.start(['serve'], { DATABASE_URL: yard.databaseUrl(), CLOUDYARD_PORT: String(secondPort) });

/** A history in the making. */
interface Recorder<In> {
  history: Operation<In, Result>[];
  /** Sends a request to a random server and records it. */
  send(
    input: In,
    request: (server: HttpClient) => Promise<HttpAnswer>,
    valueOf?: (body: any) => unknown,
  ): Promise<HttpAnswer | null>;
}

function createRecorder<In>(random: Random): Recorder<In> {
  const history: Operation<In, Result>[] = [];
  return {
    history,
    async send(input, request, valueOf) {
      const called = performance.now();
      const answer = await toAnyServer(random, request);
      const returned = performance.now();
      // Of a request that ends with 503 it is unknown whether it was executed, as of one without a response.
      const known = answer !== null && answer.status !== 503;
      expect(answer?.status).not.toBe(500);
      const output = known ? { status: answer.status, ...(valueOf && { value: valueOf(answer.body) }) } : null;
      history.push({ input, output, called, returned });
      return known ? answer : null;
    },
  };
}

/** Sends a request to a server that accepts connections. Null: the response was lost. */
async function toAnyServer(
  random: Random,
  request: (server: HttpClient) => Promise<HttpAnswer>,
): Promise<HttpAnswer | null> {
  for (;;) {
    const answer = await request(random.pick(servers)).catch((error: { cause?: { code?: string } }) => error);
    if ('status' in answer) return answer;
    if (answer.cause?.code !== 'ECONNREFUSED') return null;
  }
}

/** Runs all clients. During every second history the second server is killed. */
async function record<In>(seed: number, act: (random: Random, recorder: Recorder<In>) => Promise<unknown>) {
  const recorder = createRecorder<In>(createRandom(seed + 1000));
  const client = async (i: number) => {
    const random = createRandom(seed * 100 + i);
    for (let left = operationsOfClient; left > 0; left--) await act(random, recorder);
  };
  const acting = Promise.all(Array.from({ length: clients }, (_, i) => client(i)));
  if (seed % 2 === 1) {
    await second.kill();
    second = await startSecond();
  }
  await acting;
  return recorder.history;
}

function expectLinearizable<S, In>(
  specification: Specification<S, In, Result>,
  history: Operation<In, Result>[],
): void {
  expect(textOf(history, check(specification, history))).toBe('linearizable');
}

const seeds = Array.from({ length: histories }, (_, i) => i);
const networks = '/cloud/v1/networks/1/1';

async function newNetwork(): Promise<string> {
  return (await yard.ended(await yard.insist('POST', networks, { name: 'first' }))).created_resources.networks[0];
}

it('names of a network', timeout, async () => {
  for (const seed of seeds) {
    const id = await newNetwork();
    const history = await record<NameInput>(seed, (random, { send }) => {
      if (random.chance(0.5))
        return send(
          { op: 'get' },
          (to) => to.get(`${networks}/${id}`),
          ({ name }) => name,
        );
      const name = `name ${random.int(1000)}`;
      return send({ op: 'set', name }, (to) => to.patch(`/cloud/v2/networks/1/1/${id}`, { name }));
    });
    expectLinearizable(nameSpecification, history);
  }
});

it('tags of a network', timeout, async () => {
  for (const seed of seeds) {
    const path = `${networks}/${await newNetwork()}`;
    const tagsIn = (list: { key: string; value: string }[]) =>
      Object.fromEntries(list.map(({ key, value }) => [key, value]));
    const history = await record<TagsInput>(seed, (random, { send }) => {
      const key = `key${random.int(3)}`;
      const action = random.int(3);
      if (action === 0)
        return send(
          { op: 'get' },
          (to) => to.get(path),
          ({ tags }) => tagsIn(tags),
        );
      if (action === 1) return send({ op: 'remove', key }, (to) => to.delete(`${path}/metadata_item?key=${key}`));
      const tags = { [key]: `value${random.int(100)}` };
      return send({ op: 'merge', tags }, (to) => to.post(`${path}/metadata`, tags));
    });
    expectLinearizable(tagsSpecification, history);
  }
});

const opaque = {
  secret_type: 'opaque',
  payload: 'AAAA',
  payload_content_type: 'text/plain',
  payload_content_encoding: 'base64',
};

/** A client of its own, so that nothing else counts. */
async function newTenant(): Promise<{ clientId: number; projectId: number; token: string }> {
  const { body: client } = await yard.insist('POST', '/cloudyard/v1/clients', {
    name: `client ${crypto.randomUUID()}`,
  });
  const given = { name: 'test', role: 'admin', client_id: client.id };
  const { token } = (await yard.insist('POST', '/cloudyard/v1/tokens', given)).body;
  const projects = await yard.get('/cloud/v1/projects', { token });
  return { clientId: client.id, projectId: projects.body.results[0].id, token };
}

it('a quota with changing limits', timeout, async () => {
  for (const seed of seeds) {
    const { clientId, projectId, token } = await newTenant();
    const limits = `/cloudyard/v1/clients/${clientId}/quotas`;
    await yard.patch(limits, { region_id: 1, secret_count_limit: 3 });
    const path = `/cloud/v1/secrets/${projectId}/1`;
    const made: string[] = [];
    const create = async ({ send }: Recorder<QuotaInput>) => {
      const key = crypto.randomUUID();
      let id: string | undefined;
      const request = async (to: HttpClient) => {
        const answer = await to.request(
          'POST',
          path,
          { name: 'secret', ...opaque },
          { token, headers: { 'idempotency-key': key } },
        );
        if (answer.status !== 200) return answer;
        const task = await to.get(`/cloud/v1/tasks/${answer.body.tasks[0]}`, { token });
        id = task.body.created_resources.secrets[0];
        return { ...answer, body: { id } };
      };
      await send({ op: 'create' }, request, (body) => body.id);
      if (id !== undefined) made.push(id);
    };
    const history = await record<QuotaInput>(seed, async (random, recorder) => {
      const { send } = recorder;
      const action = random.int(10);
      const id = random.maybe(made);
      if (action === 0) {
        const limit = 1 + random.int(4);
        return send({ op: 'limit', limit }, (to) => to.patch(limits, { region_id: 1, secret_count_limit: limit }));
      }
      if (action < 3) {
        const usage = `/cloud/v2/regional_quotas/${clientId}/1`;
        return send(
          { op: 'usage' },
          (to) => to.get(usage, { token }),
          ({ secret_count_usage: used }) => used,
        );
      }
      if (action < 6 && id) return send({ op: 'delete', id }, (to) => to.delete(`${path}/${id}`, { token }));
      return create(recorder);
    });
    expectLinearizable(quotaSpecification, history);
  }
});

it('unique names of API keys', timeout, async () => {
  for (const seed of seeds) {
    const { projectId, token } = await newTenant();
    const path = `/cloud/v1/caas/keys/${projectId}/1`;
    const history = await record<KeysInput>(seed, (random, { send }) => {
      const name = `key-${random.int(3)}`;
      const namesIn = (results: { name: string }[]) => results.map((result) => result.name).sort();
      if (random.chance(0.2))
        return send(
          { op: 'list' },
          (to) => to.get(path, { token }),
          ({ results }) => namesIn(results),
        );
      if (random.chance(0.5)) return send({ op: 'delete', name }, (to) => to.delete(`${path}/${name}`, { token }));
      return send({ op: 'create', name }, (to) => to.post(path, { name, containers: [] }, { token }));
    });
    expectLinearizable(keysSpecification, history);
  }
});

it('repeats of requests with the same Idempotency-Key', timeout, async () => {
  for (const seed of seeds) {
    const { projectId, token } = await newTenant();
    const path = `/cloud/v1/secrets/${projectId}/1`;
    const history = await record<ClaimInput>(seed, (random, { send }) => {
      if (random.chance(0.2))
        return send(
          { op: 'count' },
          (to) => to.get(path, { token }),
          ({ count }) => count,
        );
      const key = `key ${random.int(8)}`;
      const headers = { 'idempotency-key': key };
      const body = { name: key, ...opaque };
      const request = (to: HttpClient) => to.request('POST', path, body, { token, headers });
      return send({ op: 'create', key }, request, ({ tasks }) => tasks?.[0]);
    });
    expectLinearizable(claimSpecification, history);
  }
});

it('the lock of a share', timeout, async () => {
  const { body: found } = await yard.get(networks);
  const network = found.results.find(({ default: isDefault }: { default: boolean }) => isDefault);
  for (const seed of seeds) {
    const path = '/cloud/v1/file_shares/1/1';
    const given = { name: 'share', protocol: 'NFS', size: 1, network: { network_id: network.id } };
    const task = await yard.ended(await yard.insist('POST', path, given));
    const url = `${path}/${task.created_resources.file_shares[0]}`;
    const history = await record<LockInput>(seed, async (random, { history, send }) => {
      const size = 1 + random.int(30);
      const called = performance.now();
      const key = { 'idempotency-key': crypto.randomUUID() };
      // With the key a lost response is repeated until it is known, so the history has no extension without a task.
      const request = async () => {
        for (;;) {
          const answer = await random
            .pick(servers)
            .request('POST', `${url}/extend`, { size }, { headers: key })
            .catch(() => null);
          if (answer && answer.status !== 503) return answer;
        }
      };
      const valueOf = (body: any) => body.tasks?.[0] ?? body.errors?.[0]?.message ?? null;
      const answer = (await send({ op: 'extend', size }, request, valueOf))!;
      const id = answer.status === 200 && answer.body.tasks[0];
      if (!id) return;
      await yard.ended(answer);
      const end = { op: 'end' as const, task: id };
      history.push({ input: end, output: { status: 200 }, called, returned: performance.now() });
    });
    expectLinearizable(lockSpecification, history);
  }
});
