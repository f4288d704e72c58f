/** Rules that hold for the requests of every operation. The operations come from the OpenAPI document. */
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { ruleOf } from '../src/http/patterns.ts';
import { declaredApi } from '../src/main/openapi-document.ts';
import { useCloudyard } from './harness.ts';
import { dereferenced } from './openapi.ts';

interface Content {
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}

interface Described {
  operationId: string;
  parameters?: { name: string; in: string; example?: unknown }[];
  requestBody?: { required?: boolean; content: Record<string, Content> };
}

/** The web page, proxies and OpenID providers forward queries, and registries follow the protocols of distribution. */
const exceptions = [
  ...['getIndex', 'authorizeContainer', 'authorizeContainerByPath', 'finishSignIn'],
  ...['getRegistryToken', 'createRegistryToken', 'receiveRegistryEvents'],
];

const { paths } = dereferenced((await declaredApi()).document) as { paths: Record<string, Record<string, Described>> };
const operations = Object.entries(paths)
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const values = new Map((operation.parameters ?? []).map(({ name, example }) => [name, String(example)]));
      const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values.get(name)!));
      return { ...operation, method: method.toUpperCase(), url };
    }),
  )
  .filter(({ operationId }) => !exceptions.includes(operationId));

// Development mode adds operations. No worker runs, so requests change rows only.
const cloud = useCloudyard({ development: true, driver: null });

it('reject all unknown query parameters by name', async () => {
  const unexpected: unknown[] = [];
  for (const { operationId, method, url, requestBody } of operations) {
    const { example, examples = {} } = requestBody?.content['application/json'] ?? {};
    const valid = example ?? Object.values(examples)[0]?.value;
    const { status, body } = await cloud.request(method, `${url}?nmae=x&Limit=1`, valid);
    const unknown = (body.errors ?? []).filter(({ message }: { message: string }) =>
      message.includes('query parameter'),
    );
    const names = unknown.map(({ path }: { path: string }) => path);
    if (status !== 400 || names.join() !== 'nmae,Limit') unexpected.push([operationId, status, body]);
  }
  expect(unexpected).toEqual([]);
});

/** Valid examples that are refused: a placeholder, resources of earlier examples, and a service that only a worker has. */
const refusedExamples: Record<string, number> = {
  ...{ createSession: 401, replaceProject: 409, declineQuotaRequest: 409, createRegistry: 503 },
};

it('accept the examples of bodies, except for IDs of resources that do not exist', async () => {
  const unexpected: unknown[] = [];
  for (const { operationId, method, url, requestBody } of operations) {
    const { example, examples = {} } = requestBody?.content['application/json'] ?? {};
    const bodies = [example, ...Object.values(examples).map(({ value }) => value)].filter((body) => body !== undefined);
    for (const valid of bodies) {
      const { status, body } = await cloud.request(method, url, valid);
      const isDone = status >= 200 && status < 300;
      const errors: { message: string }[] = body?.errors ?? [];
      const namesUnknownIds = errors.length > 0 && errors.every(({ message }) => message.includes('not found'));
      const isExpected = status === 404 || status === refusedExamples[operationId];
      if (!isDone && !isExpected && !(status === 400 && namesUnknownIds)) unexpected.push([operationId, status, body]);
    }
  }
  expect(unexpected).toEqual([]);
});

it.each([
  ['a number', '/cloud/v1/tasks', 'limit=1&limit=2', 'limit'],
  ['a text', '/cloud/v1/tasks', 'task_type=a&task_type=b', 'task_type'],
  ['a choice', '/cloud/v1/projects', 'order_by=name.asc&order_by=name.desc', 'order_by'],
  ['equal values', '/cloud/v1/regions', 'show_volume_types=true&show_volume_types=true', 'show_volume_types'],
])('refuse a parameter that is not a list and given twice: %s', async (_name, url, query, path) => {
  const { status, body } = await cloud.get(`${url}?${query}`);
  expect([status, body.errors]).toEqual([400, [{ path, message: 'must be sent only once' }]]);
});

it.each(['0x1', '1e0', '%2B1', '%20', '1.0', ''])(
  'refuse a number that is written as "%s", also in a list',
  async (text) => {
    const { status, body } = await cloud.get(`/cloud/v1/tasks?limit=${text}&project_id=1&project_id=${text}`);
    const errors = ['limit', 'project_id.1'].map((path) => ({ path, message: 'must be an integer' }));
    expect([status, body.errors]).toEqual([400, errors]);
  },
);

it('name all errors of a query at once, including dates that no column holds', async () => {
  const leap = '2016-12-31T23:59:60Z';
  const { status, body } = await cloud.get(`/cloud/v1/tasks?from_timestamp=${leap}&to_timestamp=${leap}&limit=0`);
  expect(status).toBe(400);
  const paths = body.errors.map(({ path }: { path: string }) => path);
  expect(paths.sort()).toEqual(['from_timestamp', 'limit', 'to_timestamp']);
});

it('name a missing body together with the errors of the path and the query', async () => {
  const { status, body } = await cloud.request('POST', '/cloud/v1/networks/x/1?nmae=1');
  expect(status).toBe(400);
  expect(body.errors.map(({ path }: { path: string }) => path)).toEqual(['project_id', '', 'nmae']);
});

it.each([
  ['texts', { dns_nameservers: ['8.8.8.8', '1.1.1.1', '8.8.8.8'] }, 'dns_nameservers.2'],
  [
    'objects',
    {
      host_routes: ['10.1.0.1', '10.1.0.2', '10.1.0.1'].map((nexthop) => ({ destination: '10.9.0.0/16', nexthop })),
    },
    'host_routes.2',
  ],
])('name the later one of two equal items: %s', async (_name, body, path) => {
  const refused = await cloud.patch('/cloud/v1/subnets/1/1/11111111-1111-4111-8111-111111111111', body);
  expect([refused.status, refused.body.errors]).toEqual([400, [{ path, message: 'repeats item 0' }]]);
});

it('may omit a body whose fields are all optional, and no other body', async () => {
  const unexpected: unknown[] = [];
  const optional: string[] = [];
  for (const { operationId, method, url, requestBody } of operations) {
    if (!requestBody) continue;
    const headers = { authorization: `apikey ${cloud.admin}` };
    const response = await cloud.app.inject({ method: method as 'POST', url, headers });
    const body = response.body === '' ? {} : response.json();
    const isRefused = (body.errors ?? []).some(
      ({ message }: { message: string }) => message === 'the body is required',
    );
    if (!requestBody.required) optional.push(operationId);
    if (isRefused !== (requestBody.required ?? false)) unexpected.push([operationId, body]);
  }
  expect(unexpected).toEqual([]);
  expect(optional).toEqual(expect.arrayContaining(['updateProject', 'failoverLoadBalancer', 'checkRegistryLimits']));
});

it('refuse fields by name where no body is expected, and accept an empty object', async () => {
  const unexpected: unknown[] = [];
  const bodiless = operations.filter(({ method, requestBody }) => method !== 'GET' && !requestBody);
  expect(bodiless.map(({ operationId }) => operationId)).toEqual(
    expect.arrayContaining(['revertVolume', 'acknowledgeAllTasks', 'deleteFileShare']),
  );
  for (const { operationId, method, url } of bodiless) {
    const named = await cloud.request(method, url, { snapshot_id: 'x' });
    const fields = (named.body.errors ?? []).map(({ path }: { path: string }) => path);
    if (named.status !== 400 || fields.join() !== 'snapshot_id')
      unexpected.push([operationId, named.status, named.body]);
  }
  expect(unexpected).toEqual([]);
  expect(await cloud.post('/cloud/v1/tasks/acknowledge_all', {})).toMatchObject({ status: 204 });
});

it('describe every pattern in words', async () => {
  const patternsIn = (node: unknown): string[] => {
    if (node === null || typeof node !== 'object') return [];
    const { pattern } = node as { pattern?: unknown };
    return [...(typeof pattern === 'string' ? [pattern] : []), ...Object.values(node).flatMap(patternsIn)];
  };
  const patterns = new Set(operations.flatMap(({ parameters, requestBody }) => patternsIn([parameters, requestBody])));
  expect(patterns.size).toBeGreaterThan(10);
  expect([...patterns].filter((one) => ruleOf(one) === undefined)).toEqual([]);
  // A rule continues "must be ", so it is one phrase.
  expect([...patterns].map((one) => ruleOf(one)!).filter((rule) => rule.includes(';'))).toEqual([]);
  const message =
    'must be 3 to 63 letters, digits, spaces, `.`, `_` and `-`, starting with a letter or digit and not ending with a space or `-`';
  expect(await cloud.post('/cloud/v1/projects', { name: 'v1' })).toMatchObject({
    status: 400,
    body: { errors: [{ path: 'name', message }] },
  });
});

it.each([
  ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), '', 'the body must be text in UTF-8'],
  ['an unfinished object', '{"name":', '', 'the body is not valid JSON'],
  ['a field named __proto__', '{"__proto__": {"name": "x"}}', '__proto__', 'is not a known field'],
  ['a field named constructor', '{"constructor": {"prototype": 1}}', 'constructor', 'is not a known field'],
])('refuse a body with %s', async (_name, payload, path, message) => {
  const headers = { authorization: `apikey ${cloud.admin}`, 'content-type': 'application/json' };
  const answer = await cloud.app.inject({ method: 'POST', url: '/cloud/v1/projects', headers, payload });
  expect(answer.statusCode).toBe(400);
  expect(answer.json().errors).toContainEqual({ path, message });
});

it.each(['gzip', 'br', 'x-unknown'])('refuse a body with the Content-Encoding %s', async (encoding) => {
  const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
  const payload = gzipSync('{"name": "packed"}');
  const answer = await cloud.app.inject({
    ...{ method: 'POST', url: '/cloud/v1/projects', payload },
    headers: { ...headers, authorization: `apikey ${cloud.admin}` },
  });
  expect(answer.statusCode).toBe(415);
  expect(answer.json()).toMatchObject({ exception_class: 'UnsupportedMediaType' });
});
