/**
 * No request blocks the event loop for longer than 50 ms or takes more than 64 MB. Measured as CPU time of the server's
 * thread; requests come from another thread.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { dereferenced } from '../openapi.ts';
import { problemOf, maxBlockedMs, maxBytes, useMeasuredCloud } from './measured-cloud.ts';
import { generators, type JsonSchema } from './worst-bodies.ts';

const { cloud, send, measure, expectCheap } = useMeasuredCloud();
let reader: string;
beforeAll(async () => {
  reader = (await cloud.newClient('reader')).token;
});

interface Parameter {
  in: string;
  name: string;
  schema: JsonSchema;
}
interface OperationObject {
  operationId: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
  'x-body-limit-bytes'?: number;
}

function operations() {
  const { paths } = dereferenced(cloud.app.swagger()) as unknown as {
    paths: Record<string, Record<string, OperationObject>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })),
  );
}

const ofPath: Record<string, string> = { project_id: '1', region_id: '1', client_id: '1' };

/** A path to a nonexistent resource, so that only the steps before the handler are measured. */
function pathOf({ path, parameters = [] }: { path: string; parameters?: Parameter[] }): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const schema = parameters.find((parameter) => parameter.in === 'path' && parameter.name === name)?.schema;
    if (ofPath[name]) return ofPath[name];
    if (schema?.format === 'uuid') return '00000000-0000-4000-8000-000000000000';
    return schema?.type === 'integer' ? '999999' : 'nothing';
  });
}

describe('the event loop is not blocked', () => {
  it('by any body of any operation', { timeout: 600_000 }, async () => {
    const forReaders = cloud.app.declaredOperations.filter(({ access }) => access.role === 'reader');
    const reads = new Set(forReaders.map(({ operationId }) => operationId));
    const problems: string[] = [];
    for (const operation of operations()) {
      const { operationId, method, requestBody, 'x-body-limit-bytes': limit } = operation;
      if (!requestBody) continue;
      const [[type, { schema }]] = Object.entries(requestBody.content) as [[string, { schema: JsonSchema }]];
      const isRead = reads.has(operationId);
      for (const [name, generate] of Object.entries(generators)) {
        const body = generate(schema, limit ?? 1024 * 1024);
        if (body === undefined) continue;
        const measured = await measure(async () => [await send(method, pathOf(operation), body, undefined, type)]);
        const problem = problemOf(measured);
        if (problem) problems.push(`${operationId} with ${name} (${body.length} bytes) ${problem}`);
        if (isRead && name === 'too many objects in a list') {
          const asReader = problemOf(
            await measure(async () => [await send(method, pathOf(operation), body, reader, type)]),
          );
          if (asReader) problems.push(`${operationId} by a reader ${asReader}`);
        }
      }
    }
    expect(problems).toEqual([]);
  });

  it('by any query or path of any operation', { timeout: 600_000 }, async () => {
    const problems: string[] = [];
    for (const operation of operations()) {
      const { operationId, method, parameters = [] } = operation;
      const names = parameters.filter((each) => each.in === 'query').map((each) => each.name);
      const queries = {
        'unknown parameters': repeated((i) => `k${i}=`),
        'one unknown parameter repeated': repeated(() => 'k='),
        ...Object.fromEntries(names.map((name) => [`${name} repeated`, repeated(() => `${name}=a`)])),
        ...Object.fromEntries(names.map((name) => [`a long ${name}`, `${name}=${'a'.repeat(14_000)}!`])),
        ...Object.fromEntries(
          names.map((name) => [`a JSON ${name}`, `${name}={${repeated((i) => `"k${i}":"a"`, ',')}}`]),
        ),
      };
      for (const [name, query] of Object.entries(queries)) {
        const problem = problemOf(
          await measure(async () => [await send(method, `${pathOf(operation)}?${encodeURI(query)}`)]),
        );
        if (problem) problems.push(`${operationId} with ${name} ${problem}`);
      }
      // Without an error in its query, a stream does not end.
      if (operationId === 'streamEvents') continue;
      const longPath = operation.path.replace(/\{\w+\}/g, `${'a-'.repeat(240)}!`);
      const problem = problemOf(await measure(async () => [await send(method, longPath)]));
      if (problem) problems.push(`${operationId} with a long path ${problem}`);
    }
    expect(problems).toEqual([]);
  });
});

describe('known attacks do not block the event loop', () => {
  const project = '/cloud/v1';
  const schedules = (count: number, schedule: object) => Array.from({ length: count }, () => schedule);

  it('a price preview of a reader with 16,000 schedules', async () => {
    const owner = await cloud.newClient('reader');
    const body = JSON.stringify({ schedules: schedules(16_000, { type: 'x', month: null, day: [], hour: 1 }) });
    const path = `/cloud/v2/pricing/${owner.projectId}/1/lifecycle_policy`;
    for (const size of [body.length, 60_000]) {
      const [answer] = await expectCheap(async () => [await send('POST', path, body.slice(0, size), owner.token)]);
      expect([400, 413]).toContain(answer!.status);
    }
  });

  it('a pool of a member with 924 KB of members', async () => {
    const owner = await cloud.newClient('member');
    const path = `${project}/lbpools/${owner.projectId}/1`;
    const body = (member: object, count: number) =>
      JSON.stringify({ name: 'pool', protocol: 'TCP', lb_algorithm: 'ROUND_ROBIN', members: schedules(count, member) });
    for (const [member, count] of [
      [{}, 300_000],
      [{ address: null, protocol_port: '1', weight: [], id: 5 }, 15_000],
      [{ address: null, protocol_port: '1', weight: [], id: 5 }, 1000],
      [{ address: '10.0.0.1', protocol_port: 80 }, 20_000],
    ] as const) {
      const text = body(member, count);
      const [answer] = await expectCheap(async () => [await send('POST', path, text, owner.token)]);
      expect([400, 413]).toContain(answer!.status);
    }
  });

  it('six API keys of 7 MB at once while /healthz responds', async () => {
    const owner = await cloud.newClient('admin');
    const path = `${project}/caas/keys/${owner.projectId}/1`;
    const text = (containers: string) => `{"name":"large","containers":[${containers}]}`;
    const seven = 7 * 1024 * 1024;
    for (const body of [
      text('{},'.repeat(seven / 3)),
      text('{},'.repeat(4_000_000 / 3)),
      text(`{"name":"x","namespace":"${'a'.repeat(300)}"},`.repeat(11_000).slice(0, -1)),
      text(`{"name":"${'x'.repeat(4_000_000)}"}`),
    ]) {
      const many = () => Array.from({ length: 6 }, () => send('POST', path, body, owner.token));
      const measured = await measure(() => Promise.all([...many(), send('GET', '/healthz', undefined, null)]));
      const health = measured.received.at(-1)!;
      expect(health.status).toBe(200);
      expect(measured.received.slice(0, -1).map(({ status }) => status)).toEqual(
        Array.from({ length: 6 }, () => expect.toSatisfy((status: number) => [400, 413].includes(status))),
      );
      expect(measured.cost.blockedMs).toBeLessThan(maxBlockedMs);
      expect(measured.cost.bytes).toBeLessThan(2 * maxBytes);
    }
  });

  it('a log topic whose pattern takes exponential time', async () => {
    const owner = await cloud.newClient('reader');
    const body = JSON.stringify({ logging: { topic_name: `a.${'a'.repeat(200)}!` } });
    const path = `${project}/loadbalancers/${owner.projectId}/1/check_limits`;
    const [answer] = await expectCheap(async () => [await send('POST', path, body, owner.token)]);
    expect(answer!.status).toBe(400);
  });

  it('a header with thousands of spaces', async () => {
    const headers = { 'accept-encoding': `a${' '.repeat(15_000)}b` };
    for (const path of ['/openapi.json', '/docs/']) {
      const [answer] = await expectCheap(async () => [await send('GET', path, undefined, null, undefined, headers)]);
      expect(answer!.status).toBe(200);
    }
  });

  it('schedules that never fire, previews of rare ones, and estimates of dense ones', async () => {
    const owner = await cloud.newClient('reader');
    const path = `${project}/lifecycle_policy/${owner.projectId}/1`;
    const never = { type: 'cron', month: '2-11', week: '53', day: Array(120).fill('1st mon').join(',') };
    const rare = { type: 'cron', month: '2', day: '29', day_of_week: 'mon', timezone: 'Australia/Lord_Howe' };
    const dense = (i: number) => ({
      ...{ type: 'cron', hour: `${i}`, minute: '7', timezone: ['Europe/Berlin', 'Australia/Lord_Howe'][i % 2] },
      ...{ max_quantity: 10_000, retention_time: { weeks: 400_000 } },
    });
    const all = Array.from({ length: 10 }, (_, i) => dense(i));
    const policy = { name: 'policy', action: 'volume_snapshot' };
    for (const [operation, body, status] of [
      ['estimate_max_policy_usage', { ...policy, schedules: schedules(10, never) }, 400],
      ['estimate_max_policy_usage', { ...policy, schedules: all }, 200],
      ['preview_schedule', { schedule: rare, count: 1000 }, 200],
      ['preview_schedule', { schedule: dense(1), count: 1000 }, 200],
    ] as const) {
      const requests = async () => [await send('POST', `${path}/${operation}`, JSON.stringify(body), owner.token)];
      expect((await expectCheap(requests))[0]).toMatchObject({ status });
    }
  });
});

/** Repeats a part up to the 16 KiB limit of paths and headers. */
function repeated(part: (i: number) => string, separator = '&'): string {
  let text = part(0);
  for (let i = 1; text.length < 13_000; i++) text += separator + part(i);
  return text.slice(0, 13_000);
}
