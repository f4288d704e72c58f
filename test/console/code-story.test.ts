/**
 * Sends the same story three times, to three clients of one server: as JSON, by the curl text in bash, and by the Python
 * text with the official SDK. After each step, the responses and the resources must be the same.
 */
import { execFile } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { codeFor } from '../../console/src/code/code-for.ts';
import { type ApiRequest, type Json, targetOf } from '../../console/src/code/request.ts';
import { useCloudyard } from '../harness.ts';
import { requires } from '../requires.ts';
import { operationsById, readPaths } from './operations.ts';
import { pythonSkipReason, usePythonCode } from './python-code.ts';
import { derived, type Step, story } from './story.ts';

type Ids = Record<string, string | number>;

interface Outcome {
  refused: boolean;
  /** The response, or the end of its task. Absent if this way of sending does not show it. */
  body?: unknown;
}

type Send = (request: ApiRequest, token: string) => Promise<Outcome>;

interface Player {
  token: string;
  ids: Ids;
}

const cloud = useCloudyard({ development: true });
let url: string;

beforeAll(async () => {
  await cloud.app.listen({ host: '127.0.0.1', port: 0 });
  url = `http://127.0.0.1:${(cloud.app.server.address() as AddressInfo).port}`;
});

async function newPlayer(): Promise<Player> {
  const { clientId, projectId, token } = await cloud.newClient();
  return { token, ids: { client_id: clientId, project_id: projectId, region_id: 1 } };
}

/** Replaces `$name` in all strings. */
function resolve<T extends Json>(value: T, ids: Ids): T {
  if (typeof value === 'string') return (/^\$\w+$/.test(value) ? ids[value.slice(1)] : value) as T;
  if (Array.isArray(value)) return value.map((item) => resolve(item, ids)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(item as Json, ids)])) as T;
}

function requestOf({ operation, params = {}, query, body }: Step, { ids }: Player): ApiRequest {
  const declared = operationsById.get(operation)!;
  const given = { ...ids, ...resolve(params as Record<string, Json>, ids) } as Ids;
  const used = Object.fromEntries(declared.params.map((name) => [name, given[name]!]));
  return {
    operationId: operation,
    method: declared.method,
    path: declared.path,
    url,
    params: used,
    query: resolve((query ?? {}) as Record<string, Json>, ids) as Record<string, string>,
    body: resolve((body ?? declared.example ?? null) as Json, ids) ?? undefined,
  };
}

const ending = ({ state, error, created_resources }: Record<string, unknown>) => ({ state, error, created_resources });

const sendJson: Send = async (request, token) => {
  const method = request.method.toUpperCase();
  const answer = await cloud.request(method, targetOf(request), request.body, { token });
  if (answer.status >= 400) return { refused: true, body: answer.body };
  if (!operationsById.get(request.operationId)!.answersWithTasks) return { refused: false, body: answer.body };
  return { refused: false, body: ending((await cloud.ended(answer, { token })).body) };
};

const sendByCurl: Send = async (request, token) => {
  const { curl } = codeFor(request);
  const environment = { ...process.env, CLOUDYARD_TOKEN: token };
  const { code, stdout, stderr } = await new Promise<{ code: unknown; stdout: string; stderr: string }>((done) =>
    execFile('bash', ['-c', curl], { env: environment }, (error, stdout, stderr) =>
      done({ code: error?.code ?? 0, stdout, stderr }),
    ),
  );
  // The response is empty. The text shows the task, if it has not ended already.
  if (request.operationId === 'revertVolume') return { refused: code !== 0, body: '' };
  const text = stdout || stderr.replace(/^curl: .*\n/gm, '');
  try {
    return { refused: code !== 0, body: text === '' ? '' : JSON.parse(text) };
  } catch {
    throw new Error(`${curl}\nended with ${code}: ${stdout}${stderr}`);
  }
};

/** Without times, identifiers, secrets and addresses, which differ between two clients. */
function comparable(value: unknown, key = ''): unknown {
  // A load balancer is measured from time to time.
  if (value === null || value === undefined || key === 'operating_status') return null;
  if (
    /(^|_)(id|secret|token|fingerprint|password|vip_address|by_policy|ids?)$/.test(key) &&
    typeof value !== 'object'
  ) {
    return `<${key}>`;
  }
  if (typeof value === 'string') {
    return value
      .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
      .replace(/\b(project |registry |policy |images-)\d+/g, '$1<id>')
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d{4})?/g, '<time>');
  }
  if (Array.isArray(value)) return value.map((item) => comparable(item, key));
  if (typeof value !== 'object') return value;
  if ('key' in value && value.key === 'created_by_policy') return { key: value.key };
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, comparable(item, name)]));
}

/** Lists that the steps written in story.ts change. */
const lists =
  'listProjects listNetworks listSubnets listSecrets listFileShares listFileShareAccessRules listLoadBalancers ' +
  'listListeners listLbPools listLbPoolMembers listL7Policies listL7Rules listVolumes listSnapshots ' +
  'listLifecyclePolicies listRegistries listRegistryUsers listApiKeys listPullSecrets listQuotaRequests ' +
  'getRegionalQuotas getNotificationThreshold getClient listWebhooks listUserActionSubscriptions listFaults';

/** What the story changes. Each is read if the identifiers in its path are known. */
const changed = [
  ...lists.split(' ').map((id) => [id, readPaths.get(id)!] as const),
  ...[...readPaths].filter(([, path]) => derived.some(({ operation }) => operationsById.get(operation)!.path === path)),
];

async function read(path: string, { ids, token }: Player) {
  const isOperators = path.includes('/dev/');
  const target = path.replace(/\{(\w+)\}/g, (_, name: string) => String(ids[name]));
  return cloud.get(target, { token: isOperators ? cloud.admin : token });
}

/** Kinds of resources that a step of one of them may change together. */
const kindOf = (path: string) =>
  path
    .split('/')[3]!
    .replace(/^(loadbalancers|lblisteners|lbpools|l7policies)$/, 'load balancers')
    .replace(/^(volumes|snapshots|lifecycle_policy|schedule)$/, 'volumes');

/** The resources that the step may have changed. */
async function worldAfter(step: Step, player: Player): Promise<Record<string, unknown>> {
  const world: Record<string, unknown> = {};
  for (const [id, path] of changed) {
    if (kindOf(path) !== kindOf(operationsById.get(step.operation)!.path)) continue;
    const isKnown = [...path.matchAll(/\{(\w+)\}/g)].every((match) => player.ids[match[1]!] !== undefined);
    if (isKnown) world[id] = inOrder(comparable((await read(path, player)).body));
  }
  return world;
}

/** Some changes continue after the response and have no task to wait for. */
function settled<T>(world: T): T {
  const changing = /"(new|queued_to_\w+|applying|denying|reverting|PENDING_\w+|<task_id>)\\?"/.exec(
    JSON.stringify(world),
  );
  if (changing) throw new Error(`the resources are still changing: ${changing[0]}`);
  return world;
}

/** Some lists are in the order of their random identifiers. */
function inOrder(body: any): unknown {
  if (!Array.isArray(body?.results)) return body;
  const texts = body.results.map((item: unknown) => JSON.stringify(item));
  return { ...body, results: texts.sort() };
}

/** The identifiers in the list that the step adds to; none for a step that saves nothing. */
async function listed(step: Step, player: Player): Promise<(string | number)[]> {
  if (!step.save) return [];
  const path = step.list ? readPaths.get(step.list)! : operationsById.get(step.operation)!.path;
  const { body } = await read(path, player);
  return (body.results ?? body.schedules).map((item: { id: string | number }) => item.id);
}

/** Sends one step, and returns its outcome and all resources of the client after it. */
async function play(step: Step, player: Player, send: Send) {
  const before = await listed(step, player);
  const outcome = await send(requestOf(step, player), step.operator ? cloud.admin : player.token);
  const isExpected = outcome.refused === Boolean(step.refused);
  if (!isExpected) throw new Error(`${JSON.stringify(step)} has the outcome ${JSON.stringify(outcome)}`);
  const [id] = (await listed(step, player)).filter((one) => !before.includes(one));
  if (step.save) player.ids[step.save] = id!;
  const world = await vi.waitFor(async () => settled(await worldAfter(step, player)), {
    timeout: 30_000,
    interval: 50,
  });
  return { ...outcome, body: comparable(outcome.body), world };
}

/** What the story does as JSON: the outcome of each step, by its index. */
const expected: Awaited<ReturnType<typeof play>>[] = [];

beforeAll(async () => {
  const player = await newPlayer();
  for (const step of story) expected.push(await play(step, player, sendJson));
}, 300_000);

describe.skipIf(!requires('curl', 'jq'))('the curl text', () => {
  it('does in bash what the request does, for every operation', async () => {
    const player = await newPlayer();
    for (const [index, step] of story.entries()) {
      expect({ step, ...(await play(step, player, sendByCurl)) }).toEqual({ step, ...expected[index] });
    }
  }, 300_000);

  it('ends with 0 when the request changes nothing', async () => {
    const player = await newPlayer();
    const body = { name: 'unchanged' };
    await play({ operation: 'createNetwork', body, save: 'network_id' }, player, sendJson);
    expect(await sendByCurl(requestOf({ operation: 'updateNetwork', body }, player), player.token)).toEqual({
      refused: false,
      body: '',
    });
  });

  it('ends with another status than 0 when a task fails', async () => {
    const player = await newPlayer();
    const fail = { resource: 'volume', operation: 'apply', mode: 'fail', count: 1, message: 'The disk is broken.' };
    const sendFailing = async (step: Step) => {
      await cloud.post('/cloudyard/v1/dev/faults', fail);
      return sendByCurl(requestOf(step, player), player.token);
    };
    const body = { name: 'data', size: 1, source: 'new-volume' };
    expect(await sendFailing({ operation: 'createVolume', body })).toMatchObject({
      refused: true,
      body: { state: 'ERROR', error: 'The disk is broken.' },
    });
    await play({ operation: 'createVolume', body, save: 'volume_id' }, player, sendJson);
    const snapshot = { name: 'before', volume_id: '$volume_id' };
    await play({ operation: 'createSnapshot', body: snapshot }, player, sendJson);
    expect((await sendFailing({ operation: 'revertVolume' })).refused).toBe(true);
    await cloud.delete('/cloudyard/v1/dev/faults');
  });
});

const reason = pythonSkipReason();

describe.skipIf(reason !== null)(reason ?? 'the Python text', () => {
  const python = usePythonCode();

  /** An operation that the SDK lacks is sent as JSON. */
  const sendByPython: Send = async (request, token) => {
    const text = codeFor(request).python;
    if (text === null) return sendJson(request, token);
    const { status, body } = await python.run(text, token);
    if (status === 0) throw new Error(`${text}\nended with ${body}`);
    return status === 200 ? { refused: false } : { refused: true, body };
  };

  it('does with the official SDK what the request does, for every operation of the SDK', async () => {
    const player = await newPlayer();
    for (const [index, step] of story.entries()) {
      const { body: shown, ...found } = await play(step, player, sendByPython);
      const { body, ...others } = expected[index]!;
      expect({ step, ...found }).toEqual({ step, ...others });
      if (others.refused) expect(shown).toEqual(body);
    }
  }, 300_000);
});
