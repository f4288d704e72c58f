/** The client's commands, as processes, on one server with simulated drivers. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bootstrapToken, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { pinnedNode } from '../server-program.ts';
import { bin, type Client, openClient } from './client.ts';

let yard: Yard;
let env: Client['env'];
let run: Client['run'];
let data: Client['data'];

beforeAll(async () => void ({ yard, env, run, data } = await openClient()));
afterAll(() => yard?.cleanUp());

const network = ['--network', 'network_id=default'];

describe('contexts', () => {
  it('are kept in a file of their owner, listed without tokens, used and removed', async () => {
    expect(statSync(join(env['XDG_CONFIG_HOME']!, 'cloudyard', 'contexts.json')).mode & 0o777).toBe(0o600);
    await run(['context', 'add', 'other', '--url', 'http://127.0.0.1:1/', '--project', '7']);
    const listed = await run(['context', 'list']);
    expect(listed.stdout).toMatch(
      /^NAME +CURRENT +URL +PROJECT +REGION\nlocal +false +http.*\nother +true +.*:1 +7 +-\n$/,
    );
    expect(listed.stdout).not.toContain(bootstrapToken);
    expect(await run(['project', 'list'])).toMatchObject({ code: 1, stdout: '' });
    expect((await run(['project', 'list', '--context', 'local', '-q'])).stdout).toBe('1\n');
    expect(await run(['context', 'use', 'local'])).toMatchObject({ code: 0 });
    expect(await run(['context', 'remove', 'other'])).toMatchObject({ code: 0 });
    expect(await run(['context', 'use', 'other'])).toMatchObject({
      code: 4,
      stderr: 'cloudyard: context other not found\n',
    });
    const { stderr } = await run(['project', 'list'], '', { CLOUDYARD_URL: yard.url });
    expect(stderr).toContain('; set CLOUDYARD_TOKEN, or a token in the context\n');
    const ofEnvironment = { XDG_CONFIG_HOME: '/nowhere', CLOUDYARD_URL: yard.url, CLOUDYARD_TOKEN: bootstrapToken };
    expect((await run(['project', 'list', '-q'], '', ofEnvironment)).stdout).toBe('1\n');
  });
});

it('a command whose output cannot be written fails with the reason', () => {
  const full = openSync('/dev/full', 'w');
  const ended = spawnSync(pinnedNode, [bin, 'context', 'list'], {
    env,
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
  });
  closeSync(full);
  expect(ended.stderr).toMatch(/^cloudyard: cannot write to standard output: ENOSPC.*\n$/);
  expect(ended.status).toBe(1);
});

describe('commands of resources', () => {
  it('create with objects and names, wait, list, change and delete', async () => {
    const access = ['--access', 'ip=10.0.0.1,mode=rw'];
    const create = ['file-share', 'create', '--name', 'data', '--size', '1', ...network, ...access];
    const created = await run([...create, '--tags', 'team=web', '-o', 'json']);
    expect(created.code).toBe(0);
    expect(created.stderr).toMatch(
      /^(task [\da-f-]+ \(create_sfs\): \w+\n)*task [\da-f-]+ \(create_sfs\): FINISHED\n$/,
    );
    const share = JSON.parse(created.stdout);
    expect(share).toMatchObject({ name: 'data', status: 'available', tags: [{ key: 'team', value: 'web' }] });
    expect(await data('file-share', 'access-rule', 'list', 'data')).toMatchObject([{ access_to: '10.0.0.1' }]);
    expect(await data('file-share', 'extend', 'data', '--size', '2')).toMatchObject({ id: share.id, size: 2 });
    expect(await data('file-share', 'update', share.id, '--name', 'data2')).toMatchObject({ name: 'data2' });
    // Updates that change nothing print the resource, too.
    const unchanged = ['file-share', 'update', 'data2', '--tags', 'team=web'];
    expect(await data(...unchanged)).toMatchObject({ id: share.id, tags: share.tags });
    expect(await run([...unchanged, '--quiet'])).toEqual({ code: 0, stdout: `${share.id}\n`, stderr: '' });
    expect((await run([...unchanged, '-q', '--columns', 'connection_point'])).stdout).toBe(
      `${share.connection_point}\n`,
    );
    expect(await data(...unchanged, '--no-wait')).toEqual({ tasks: [] });
    const table = await run(['file-share', 'list', '--columns', 'name,size']);
    expect(table.stdout).toBe('NAME   SIZE\ndata2  2\n');
    const deleted = await run(['file-share', 'delete', 'data2', '--quiet']);
    expect(deleted).toMatchObject({ code: 0, stdout: '', stderr: '' });
    expect(await data('file-share', 'list')).toEqual([]);
  });

  it('wait for a revert, whose response names no task', async () => {
    await data('volume', 'create', '--name', 'disk', '--source', 'new-volume', '--size', '1');
    await data('snapshot', 'create', '--name', 'before', '--volume-id', 'disk');
    expect(await data('volume', 'revert', 'disk')).toMatchObject({ name: 'disk', task_id: null });
    expect(await data('snapshot', 'list', '--volume-id', 'disk')).toMatchObject([{ name: 'before' }]);
    const tagged = await data('volume', 'update', 'disk', '--tags', 'network_id=none');
    expect(tagged).toMatchObject({ tags: [{ key: 'network_id', value: 'none' }] });
  });

  it('take bodies from files and standard input, and nested resources', async () => {
    const body = 'name: balancer\nlisteners:\n- {name: web, protocol: HTTP, protocol_port: 8088}\n';
    const created = await run(['load-balancer', 'create', '--body', '-', '-o', 'json'], body);
    expect(JSON.parse(created.stdout)).toMatchObject({ name: 'balancer', provisioning_status: 'ACTIVE' });
    writeFileSync(join(yard.folder, 'pool.json'), '{"name": "replaced", "lb_algorithm": "ROUND_ROBIN"}');
    const options = ['--name', 'pages', '--protocol', 'HTTP', '--listener-id', 'web'];
    const pool = await data('pool', 'create', '--body', `@${join(yard.folder, 'pool.json')}`, ...options);
    expect(pool).toMatchObject({ name: 'pages', lb_algorithm: 'ROUND_ROBIN' });
    const member = await data('pool', 'member', 'add', 'pages', '--address', '127.0.0.1', '--protocol-port', '9001');
    expect(member).toMatchObject({ address: '127.0.0.1' });
    await data('load-balancer', 'delete', 'balancer');
  });

  it('print what is neither a resource nor JSON', async () => {
    expect((await run(['server', 'metrics'])).stdout).toContain('# TYPE ');
    expect(await data('api-token', 'create', '--name', 'ci', '--role', 'reader')).toMatchObject({ role: 'reader' });
    expect(await run(['api-token', 'revoke', 'ci'])).toMatchObject({ code: 0, stdout: '' });
    const fits = ['file-share', 'check-limits', '--size', '1'];
    expect(await data(...fits)).toEqual({});
    for (const options of [[], ['-o', 'wide'], ['-q']]) {
      expect(await run([...fits, ...options])).toEqual({ code: 0, stdout: '', stderr: '' });
    }
    expect(await data('fault', 'list')).toEqual([]);
  });

  it('take the name of a repository with its slashes, as their help says', async () => {
    await data('registry', 'create', '--name', 'images');
    const listed = await run(['registry', 'artifact', 'list', 'images', 'team/app']);
    expect(listed).toMatchObject({ code: 4, stderr: expect.stringContaining('repository team/app not found') });
    const { stdout } = await run(['registry', 'artifact', 'list', '--help']);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('prefix of the registry, such as `team/app`');
  });

  it('request all pages', async () => {
    for (const name of ['one', 'two', 'three']) await data('project', 'create', '--name', `project ${name}`);
    expect((await data('project', 'list')).length).toBe(4);
    expect((await data('project', 'list', '--limit', '2')).length).toBe(2);
    const all = await run(['api', 'GET', '/cloud/v1/projects', '--paginate']);
    expect(JSON.parse(all.stdout)).toMatchObject({ count: 4 });
    const byThree = await run(['api', 'GET', '/cloud/v1/projects?limit=3', '--paginate', '-f', 'offset=1']);
    expect(JSON.parse(byThree.stdout).results).toEqual(JSON.parse(all.stdout).results.slice(1));
    expect((await data('volume', 'list', '--project', 'project two')).length).toBe(0);
    const named = await run(['api', 'GET', '/cloud/v1/volumes/{project}/{region}', '--project', 'project two']);
    expect(JSON.parse(named.stdout)).toMatchObject({ count: 0 });
  });
});

describe('api', () => {
  it('sends a parameter of the query as often as it is given', async () => {
    const states = ['-f', 'state=FINISHED', '-f', 'state=ERROR'];
    const { stdout } = await run(['api', 'GET', '/cloud/v1/tasks', ...states]);
    expect(JSON.parse(stdout).count).toBeGreaterThan(0);
  });

  it('prints events as they arrive, until Ctrl-C', async () => {
    const args = [bin, 'api', 'GET', '/cloudyard/v1/events', '-f', 'kinds=project'];
    const child = spawn(pinnedNode, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const closed = once(child, 'close');
    let [printed, errors] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    try {
      await until(() => printed !== '', 20, 'the start of the stream');
      await data('project', 'create', '--name', 'project with events');
      await until(() => /^data: .*"kind":"project".*"change":"created"/m.test(printed), 20, 'the event');
      child.kill('SIGINT');
      expect(await closed).toEqual([null, 'SIGINT']);
      expect(errors).toBe('');
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('refuses a field of the body that is given twice', async () => {
    const twice = await run(['api', 'POST', '/cloud/v1/projects', '-f', 'name=one', '-f', 'name=two']);
    expect(twice).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('-f name is given twice;') });
  });
});

describe('help', () => {
  it('marks the options that must be given, and not those with a single choice', async () => {
    const { stdout } = await run(['file-share', 'create', '--help']);
    const text = stdout.replaceAll(/\s+/g, ' ');
    expect(text).toContain('--protocol <VALUE> one of: NFS; default --size <N> Size in GiB; required');
  });
});

describe('exit codes', () => {
  it.each([
    [2, ['file-share', 'crate'], "unknown command 'crate'\n(Did you mean create?)"],
    [2, ['file-share', 'xyzzy'], "unknown command 'xyzzy'; --help lists the commands"],
    [2, ['file-share', 'list', '--colour', 'red'], "unknown option '--colour'"],
    [2, ['file-share', 'show'], "missing required argument 'file-share'"],
    [2, ['project', 'delete'], "missing required argument 'project'"],
    [2, ['file-share', 'create', '--name', 'x'], 'required: --size'],
    [2, ['file-share', 'create', '--size', 'big'], '--size must be a whole number, not "big"'],
    [2, ['file-share', 'list', '-o', 'xml'], "argument 'xml' is invalid"],
    [2, ['file-share', 'list', '--columns', 'nmae'], 'unknown column nmae; known: id, '],
    [2, ['file-share', 'delete', 'x', '--timeout', 'long'], '--timeout must be a number of seconds'],
    [2, ['file-share', 'list', '--context', 'none'], 'context none not found; known: local'],
    [2, ['volume', 'create', '--body', '@/nowhere'], '--body: /nowhere cannot be read (ENOENT)'],
    [2, ['volume', 'create', '--body', '{'], '--body is neither JSON nor YAML'],
    [2, ['api', 'FETCH', '/'], 'the method must be one of: GET'],
    [2, ['api', 'POST', '/x', '--paginate'], '--paginate needs the method GET'],
    [2, ['apply', '-f', '/nowhere'], '/nowhere cannot be read (ENOENT)'],
    [2, ['apply', '-f', '/dev/null', '--prune', 'app=shop'], 'no resources found in /dev/null'],
    [
      2,
      ['pool', 'health-monitor', 'create', 'x', '--timeout', '5', '--type', 'TCP'],
      '--max-retries, --field-timeout\n',
    ],
    [2, ['network', 'create', '--name', 'x', '--columns', 'nmae'], 'unknown column nmae'],
    [2, ['task', 'show', ''], 'task must not be ""'],
    [2, ['completion', 'tcsh'], "'tcsh' is invalid"],
    [4, ['file-share', 'show', 'nothing'], 'file share nothing not found'],
    [4, ['file-share', 'show', '00000000-0000-4000-8000-000000000000'], 'not found'],
    [4, ['api', 'GET', '/cloud/v1/nothing'], ''],
    [1, ['file-share', 'create', '--name', 'x', '--size', '0', ...network], 'size: must be at least 1'],
  ])('%i of %j', async (code, args, message) => {
    const ended = await run(args);
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toContain(`cloudyard: `);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toMatch(/\n {4}at /);
  });

  it('are 4 for the default project if the token does not include it, with how to select another one', async () => {
    const client = await data('client-account', 'create', '--name', 'tenant');
    const { token } = await data(
      ...['api-token', 'create', '--name', 'ci', '--client-id', String(client.id), '--role', 'member'],
    );
    const own = { CLOUDYARD_URL: yard.url, CLOUDYARD_TOKEN: token };
    expect(await run(['file-share', 'list'], '', own)).toMatchObject({
      code: 4,
      stderr:
        'cloudyard: project 1 not found; select one of "cloudyard project list" with --project or CLOUDYARD_PROJECT\n',
    });
    const [project] = JSON.parse((await run(['project', 'list', '-o', 'json'], '', own)).stdout);
    const named = await run(['file-share', 'list', '-q'], '', { ...own, CLOUDYARD_PROJECT: String(project.id) });
    expect(named).toMatchObject({ code: 0, stderr: '' });
    expect((await run(['file-share', 'list', '--project', '99'], '', own)).stderr).toBe(
      'cloudyard: project 99 not found\n',
    );
  });

  it('are 1 for an exceeded quota, which is named once', async () => {
    const { code, stderr } = await run('volume create --name big --source new-volume --size 200000'.split(' '));
    expect({ code, figures: stderr.match(/limit \d+, in use/g)?.length, stderr }).toMatchObject({
      code: 1,
      figures: 1,
    });
  });

  it('are 1 for a task that fails, and 3 for one that takes too long', async () => {
    await data(
      'fault',
      'create',
      '--resource',
      'volume',
      '--operation',
      'apply',
      '--mode',
      'fail',
      '--message',
      'no disk',
    );
    const create = ['volume', 'create', '--source', 'new-volume', '--size', '1', '--name'];
    const failed = await run([...create, 'broken']);
    expect(failed).toMatchObject({ code: 1, stdout: '' });
    expect(failed.stderr).toMatch(/task [\da-f-]+ failed: .*no disk/);
    await data('fault', 'create', '--resource', 'volume', '--operation', 'apply', '--mode', 'stall');
    const late = await run([...create, 'late', '--timeout', '0.2']);
    expect(late).toMatchObject({ code: 3, stdout: '' });
    const [, task] = /timed out after 0\.2 s; still running: (\S+)/.exec(late.stderr)!;
    const asked = await run([...create, 'asked', '--no-wait', '-q']);
    await data('fault', 'clear');
    expect(await data('task', 'show', task!, '--query-wait', '30')).toMatchObject({ state: 'FINISHED' });
    expect(await data('task', 'show', asked.stdout.trim())).toMatchObject({ task_type: 'create_volume' });
  });

  it('are 2 with the candidates for a name that several resources have, and 1 without a server or a valid token', async () => {
    for (let i = 0; i < 2; i++) await data('network', 'create', '--name', 'twin');
    const twins = (await data('network', 'list')).filter(({ name }: { name: string }) => name === 'twin');
    const ambiguous = await run(['network', 'delete', 'twin']);
    expect(ambiguous.code).toBe(2);
    for (const { id } of twins) expect(ambiguous.stderr).toContain(id);
    const elsewhere = { CLOUDYARD_URL: 'http://127.0.0.1:1', CLOUDYARD_TOKEN: 'x' };
    const unreachable = await run(['project', 'list'], '', elsewhere);
    expect(unreachable).toMatchObject({ code: 1, stderr: expect.stringContaining('cannot reach http://127.0.0.1:1') });
    const denied = await run(['project', 'list'], '', { ...elsewhere, CLOUDYARD_URL: yard.url });
    expect(denied).toMatchObject({ code: 1, stdout: '' });
  });

  it('are 1 for a server that redirects, answers with garbage, or dies', async () => {
    const server = createServer((request, response) => {
      if (request.url!.startsWith('/cloud/v1/regions')) {
        return response.writeHead(308, { location: 'https://other.example/' }).end();
      }
      if (request.url === '/cloudyard/v1/events') {
        response.writeHead(200).write('retry: 1000\n\n');
        return void setTimeout(() => response.destroy(), 100);
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"results": [');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const own = { CLOUDYARD_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, CLOUDYARD_TOKEN: 'x' };
    expect(await run(['project', 'list'], '', own)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'cloudyard: the server sent JSON that is not valid\n',
    });
    expect(await run(['region', 'list'], '', own)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `cloudyard: ${own.CLOUDYARD_URL} redirects to https://other.example/; use that URL in the context\n`,
    });
    const byTls = { ...own, CLOUDYARD_URL: own.CLOUDYARD_URL.replace('http:', 'https:') };
    expect((await run(['region', 'list'], '', byTls)).stderr).toBe(
      `cloudyard: cannot reach ${byTls.CLOUDYARD_URL}: it does not use TLS; try http://\n`,
    );
    expect(await run(['event', 'stream'], '', own)).toMatchObject({
      code: 1,
      stdout: 'retry: 1000\n\n',
      stderr: 'cloudyard: the connection broke: aborted\n',
    });
    server.close();
  });
});

describe('completion', () => {
  const complete = async (...words: string[]) => (await run(['__complete', ...words])).stdout.split('\n').slice(0, -1);

  it('completes commands, options, values, and names of the server', async () => {
    expect(await complete('file-s')).toEqual(['file-share']);
    expect(await complete('file-share', 'cre')).toEqual(['create']);
    expect(await complete('pool', 'member', 'li')).toEqual(['list']);
    expect(await complete('st')).toEqual(['start']);
    expect(await complete('quota', 'requests', '')).toEqual(['list', 'approve', 'decline']);
    expect(await complete('token', 'create', '--ro')).toEqual(['--role']);
    expect(await complete('file-share', 'create', '--si')).toEqual(['--size']);
    expect(await complete('volume', 'create', '--source', 'new')).toEqual(['new-volume']);
    expect(await complete('network', 'show', 'def')).toEqual(['default']);
    expect(await complete('snapshot', 'create', '--volume-id', 'di')).toEqual(['disk']);
    expect(await complete('context', 'use', '')).toEqual(['local']);
    expect(await complete('network', 'show', 'default', '')).toEqual([]);
    expect(await complete('network', 'foo', '')).toEqual([]);
    expect(await complete('context', 'list', '')).toEqual([]);
    expect(await complete('context', 'add', 'new', '--url', 'https://b.example', '--project', '')).toEqual([]);
  });

  it('completes the options of commands that are no operations', async () => {
    expect(await complete('apply', '--ti')).toEqual(['--timeout']);
    expect(await complete('diff', '--ex')).toEqual(['--exit-code']);
    expect(await complete('context', 'add', 'other', '--token')).toEqual(['--token', '--token-file']);
    expect(await complete('api', 'GET', '/cloud/v1/regions', '--pag')).toEqual(['--paginate']);
    expect(await complete('apply', '--output', 'y')).toEqual(['yaml']);
    expect(await complete('volume', 'revert', '--no')).toEqual(['--no-wait']);
  });

  it('completes names of the project that is typed', async () => {
    await data('project', 'create', '--name', 'elsewhere');
    await data('network', 'create', '--name', 'there', '--project', 'elsewhere');
    expect(await complete('network', 'show', 'th')).toEqual([]);
    expect(await complete('network', 'show', '--project', 'elsewhere', '--quiet', 'th')).toEqual(['there']);
    expect(await complete('network', 'show', '--project', '=', 'elsewhere', 'th')).toEqual(['there']);
    expect(await complete('network', 'show', '--project=elsewhere', 'th')).toEqual(['there']);
    expect(await complete('network', 'show', 'def', '--context')).toEqual(['--context']);
  });

  it('does not take an option for the value of the option before it, if that is optional', async () => {
    await data('load-balancer', 'create', '--name', 'balancer');
    const show = ['load-balancer', 'show', '--show-stats'];
    expect(await complete(...show, '--project', '1', '')).toEqual(['balancer']);
    expect(await complete(...show, '--proj')).toEqual(['--project']);
    expect(await complete(...show, 'true', '--project', '1', '')).toEqual(['balancer']);
  });

  it('prints nothing if the server cannot be reached, or does not respond', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    for (const port of [1, (silent.address() as AddressInfo).port]) {
      const own = { CLOUDYARD_URL: `http://127.0.0.1:${port}` };
      expect(await run(['__complete', 'network', 'show', ''], '', own)).toEqual({ code: 0, stdout: '', stderr: '' });
    }
    silent.close();
  });

  it('works in bash', async () => {
    const folder = join(yard.folder, 'bin');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'cloudyard'), `#!/bin/sh\nexec ${pinnedNode} ${bin} "$@"\n`, { mode: 0o755 });
    const script = (await run(['completion', 'bash'])).stdout;
    const typed = 'COMP_WORDS=(cloudyard network show de); COMP_CWORD=3; _cloudyard; printf "%s\\n" "${COMPREPLY[@]}"';
    const options = { env: { ...env, PATH: `${folder}:${env['PATH']}` }, encoding: 'utf8' as const };
    expect(execFileSync('bash', ['-c', `${script}\n${typed}`], options)).toBe('default\n');
  });
});
