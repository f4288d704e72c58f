/** The text that the console shows for a request, without a server. code-story.test.ts runs it against one. */
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { codeFor } from '../../console/src/code/code-for.ts';
import { pythonMethods } from '../../console/src/code/python-methods.ts';
import { pythonArguments, requiredArguments } from '../../console/src/code/python.ts';
import type { ApiRequest } from '../../console/src/code/request.ts';
import { answersWithTasks } from '../../console/src/code/task-operations.ts';
import { type Operation, operations, operationsById } from './operations.ts';
import { pythonSkipReason, usePythonCode } from './python-code.ts';

const url = 'http://127.0.0.1:8080';
const awkward = [
  `it's "quoted" \\ \`id\` $(id) $HOME \${HOME} $\${HOME} %{if} %%{ !! #`,
  'two\nlines\r\n\ttab\u0000\u0007\u007f',
  '😀 👨‍👩‍👧 \u05e9\u05dc\u05d5\u05dd \u202eright to left\u202c \u2028',
  '<b>&amp;</b> {a,b} [1-9] ~ * ?',
  `'''"""`,
  'half of a pair: \ud83d',
];
const anyText = fc.oneof(fc.constantFrom(...awkward), fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary' }));
/** Controls and marks of direction. */
const hidden = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|(?!\n)\p{Cc}/u;

function requestOf({ id, method, path, params }: Operation, given: Partial<ApiRequest> = {}): ApiRequest {
  const values = Object.fromEntries(params.map((name) => [name, 1]));
  return { operationId: id, method, path, url, params: values, ...given };
}

/** The arguments that bash gives to curl, and its input if they say that it reads some. */
function curlArguments(text: string): string[] {
  const script = `curl() { printf '%s\\0' "$@"; case "$*" in *@-*) cat;; esac; }\n${text}`;
  const { stdout } = spawnSync('bash', ['-s'], { input: script, env: { ...process.env, CLOUDYARD_TOKEN: 'token' } });
  return stdout.toString().split('\0');
}

describe('the curl text', () => {
  it('exists for every operation that changes something, and waits for its tasks', () => {
    for (const operation of operations) {
      const { curl } = codeFor(requestOf(operation));
      const target = `${url}${operation.path.replaceAll(/\{\w+\}/g, '1')}`;
      expect(curl).toContain(`-X ${operation.method.toUpperCase()} ${target}`);
      expect([operation.id, answersWithTasks(operation.id)]).toEqual([operation.id, operation.answersWithTasks]);
      const waits = operation.answersWithTasks || operation.id === 'revertVolume';
      expect(curl.includes('/cloud/v1/tasks/$task')).toBe(waits);
    }
  });

  it('passes any text unchanged and hides no character of it', () => {
    const operation = operationsById.get('updateApiKey')!;
    const property = fc.property(anyText, anyText, anyText, (name, filter, description) => {
      fc.pre(name !== '.' && name !== '..');
      const body = { description, [name]: [filter, null, true, 1.5] };
      const { curl } = codeFor(requestOf(operation, { params: { key_name: name }, query: { filter }, body }));
      expect(curl).not.toMatch(hidden);
      const [, , , , target, ...options] = curlArguments(curl);
      const sent = new URL(target!);
      expect(decodeURIComponent(sent.pathname.split('/').at(-1)!)).toBe(name.toWellFormed());
      expect(sent.searchParams.get('filter')).toBe(filter.toWellFormed());
      expect(JSON.parse(options[options.indexOf('-d') + 1]!)).toEqual(body);
      expect(options).toContain('Authorization: apikey token');
    });
    fc.assert(property, { numRuns: 100 });
  });

  it('sends a body that is longer than one argument may be', () => {
    const body = { description: awkward.join('').repeat(2000) };
    const { curl } = codeFor(requestOf(operationsById.get('updateApiKey')!, { body }));
    const sent = curlArguments(curl);
    expect(sent.at(-2)).toBe('@-');
    expect(JSON.parse(sent.at(-1)!)).toEqual(body);
  });

  it('sends several requests in their order, whatever the length of their bodies', () => {
    const operation = operationsById.get('updateApiKey')!;
    const texts = ['short', 'long '.repeat(10_000), 'last'];
    const requests = texts.map((description) => requestOf(operation, { body: { description } }));
    const { curl, terraform } = codeFor(requests[0]!, ...requests.slice(1));
    expect(curlArguments(curl).flatMap((given) => /"description": "(\w+)/.exec(given)?.[1] ?? [])).toEqual([
      'short',
      'long',
      'last',
    ]);
    expect(terraform).toBeNull();
  });

  it('repeats the name of a list in the query and leaves out what is not set', () => {
    const query = { id: ['a', 'b c'], none: null, flag: false };
    const { curl } = codeFor(requestOf(operationsById.get('moveClock')!, { query }));
    expect(curlArguments(curl)[4]).toBe(`${url}/cloudyard/v1/dev/clock?id=a&id=b%20c&flag=false`);
  });
});

const reason = pythonSkipReason();

describe.skipIf(reason !== null)(reason ?? 'the Python text', () => {
  const python = usePythonCode();
  const shapeOf = (method: string, path: string) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`;

  it('exists for exactly the operations of the SDK', async () => {
    const methods = new Map((await python.methods()).map((found) => [shapeOf(found.method, found.path), found]));
    for (const { id, method, path } of operations) {
      const found = methods.get(shapeOf(method, path));
      expect([id, pythonMethods[id]]).toEqual([id, found?.name]);
    }
    const unknown = Object.keys(pythonMethods).filter((id) => !operationsById.has(id));
    expect(unknown).toEqual([]);
  });

  it('passes arguments that the methods have, other fields in extra_body, and all that the methods require', async () => {
    const methods = new Map((await python.methods()).map((found) => [found.name, found]));
    const nameAll = (names: string[]) => Object.fromEntries(names.map((name) => [name, 'x']));
    const wrong = operations.flatMap((operation) => {
      const method = methods.get(pythonMethods[operation.id] ?? '');
      if (!method) return [];
      const argumentsFor = (fields: string[]) => {
        const body = operation.fields.length > 0 ? nameAll(fields) : undefined;
        return Object.keys(pythonArguments(requestOf(operation, { query: nameAll(operation.query), body })));
      };
      const given = [...argumentsFor(operation.required), ...(requiredArguments[operation.id] ?? []), 'body'];
      const notInSdk = argumentsFor(operation.fields).filter((name) => !method.parameters.includes(name));
      const missing = method.required.filter((name) => !given.includes(name));
      return notInSdk.length + missing.length > 0 ? [{ id: operation.id, notInSdk, missing }] : [];
    });
    expect(wrong).toEqual([]);
  });

  it('passes any text unchanged and hides no character of it', async () => {
    const operation = operationsById.get('createNetwork')!;
    const property = fc.asyncProperty(anyText, anyText, async (name, value) => {
      const body = { name, tags: { [value]: name }, metadata: { a: [value, null, true, 1e21, -0.5] } };
      const params = { project_id: 3, region_id: 4 };
      const text = codeFor(requestOf(operation, { params, body })).python!;
      expect(text).not.toMatch(hidden);
      const { metadata, ...given } = body;
      expect(await python.calls(text)).toEqual([
        ['Gcore', { api_key: 'token', base_url: url, cloud_project_id: 3, cloud_region_id: 4 }],
        ['cloud.networks.create_and_poll', { ...given, extra_body: { metadata } }],
      ]);
    });
    await fc.assert(property, { numRuns: 100 });
  });

  it('uses one client for several requests', async () => {
    const operation = operationsById.get('updateLifecyclePolicy')!;
    const of = (policy_id: number) =>
      requestOf(operation, { params: { project_id: 3, region_id: 4, policy_id }, body: { status: 'paused' } });
    expect((await python.calls(codeFor(of(1), of(2)).python!)).slice(1)).toEqual([
      ['cloud.snapshot_schedules.update', { policy_id: 1, status: 'paused' }],
      ['cloud.snapshot_schedules.update', { policy_id: 2, status: 'paused' }],
    ]);
  });

  it('waits for tasks where the SDK does not', async () => {
    const text = codeFor(requestOf(operationsById.get('deleteSubnet')!)).python!;
    expect(text).toMatch(/^for task in client\.cloud\.networks\.subnets\.delete\(subnet_id=1\)\.tasks:$/m);
  });

  it('does not exist for a request without an argument that the SDK requires', () => {
    const operation = operationsById.get('updateL7Rule')!;
    expect(codeFor(requestOf(operation, { body: { value: '/' } })).python).toBeNull();
    const body = { value: '/', type: 'PATH', compare_type: 'REGEX' };
    expect(codeFor(requestOf(operation, { body })).python).toContain(`compare_type='REGEX'`);
  });
});
