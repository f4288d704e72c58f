/** The client's commands, as processes, on one server with simulated drivers. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../../src/main/root.ts';
import { bootstrapToken, openYard } from '../processes.ts';
import type { Ended, Yard } from '../processes.ts';

const bin = join(root, 'bin', 'cloudyard.mjs');
const pinnedNode = join(root, 'node_modules', 'node', 'bin', 'node');

let yard: Yard;
let env: Record<string, string>;

beforeAll(async () => {
  yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'simulated', CLOUDYARD_DEV: '1' });
  await yard.start(['start']);
  env = { PATH: process.env['PATH']!, HOME: yard.folder, XDG_CONFIG_HOME: join(yard.folder, 'config') };
  const added = await run(['context', 'add', 'local', '--url', yard.url, '--token-file', '-'], `${bootstrapToken}\n`);
  expect(added).toMatchObject({ code: 0, stdout: '', stderr: '' });
});
afterAll(() => yard?.cleanUp());

function run(args: string[], input = '', own: Record<string, string> = {}): Promise<Omit<Ended, 'signal'>> {
  return new Promise((resolve) => {
    const child = spawn(pinnedNode, [bin, ...args], { env: { ...env, ...own } });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('close', (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(input);
  });
}

/** Runs a command that must succeed, and returns its data. */
async function data(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await run([...args, '-o', 'json']);
  expect([args.join(' '), code, code === 0 ? '' : stderr]).toEqual([args.join(' '), 0, '']);
  return stdout === '' ? undefined : JSON.parse(stdout);
}

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
    const ofEnvironment = { XDG_CONFIG_HOME: '/nowhere', CLOUDYARD_URL: yard.url, CLOUDYARD_TOKEN: bootstrapToken };
    expect((await run(['project', 'list', '-q'], '', ofEnvironment)).stdout).toBe('1\n');
  });
});

describe('commands of resources', () => {
  it('create with objects and names, wait, list, change and delete', async () => {
    const create = [
      'file-share',
      'create',
      '--name',
      'data',
      '--size',
      '1',
      ...network,
      '--access',
      'ip=10.0.0.1,mode=rw',
    ];
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
    expect(await data('file-share', 'check-limits', '--size', '1')).toEqual(expect.any(Object));
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
    expect((await data('volume', 'list', '--project', 'project two')).length).toBe(0);
    const named = await run(['api', 'GET', '/cloud/v1/volumes/{project}/{region}', '--project', 'project two']);
    expect(JSON.parse(named.stdout)).toMatchObject({ count: 0 });
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
    [1, ['file-share', 'create', '--name', 'x', '--size', '0', ...network], 'size: must be >= 1'],
  ])('%i of %j', async (code, args, message) => {
    const ended = await run(args);
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toContain(`cloudyard: `);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toMatch(/\n {4}at /);
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

  it('are 1 for a server that redirects, or answers with garbage', async () => {
    const server = createServer((request, response) => {
      if (request.url!.startsWith('/cloud/v1/regions')) {
        return response.writeHead(308, { location: 'https://other.example/' }).end();
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
    server.close();
  });
});

const shop = `
kind: listener
name: shop-web
protocol: HTTP
protocol_port: 8090
load_balancer_id: shop
---
kind: load-balancer
name: shop
tags: {app: shop}
---
- kind: file-share
  name: uploads
  protocol: NFS
  size: 1
  network: {network_id: shop}
  access: [{ip_address: 10.0.0.1, access_mode: rw}]
  tags: {app: shop}
- {kind: subnet, name: shop-1, network_id: shop, cidr: 10.9.0.0/24}
- {kind: network, name: shop, tags: {app: shop}}
`;

describe('apply', () => {
  it('creates in the order of dependencies, changes what differs, and prunes by tag', async () => {
    const actions = async (command: string, text: string, ...more: string[]) => {
      const { code, stdout, stderr } = await run([command, '-f', '-', '-o', 'json', ...more], text);
      expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
      const rows = JSON.parse(stdout) as { action: string; kind: string; name: string }[];
      return rows.map(({ action, kind, name }) => `${action} ${kind} ${name}`);
    };
    const all = ['network shop', 'subnet shop-1', 'file-share uploads', 'load-balancer shop', 'listener shop-web'];
    expect(await actions('diff', shop)).toEqual(all.map((name) => `create ${name}`));
    expect(await actions('apply', shop)).toEqual(all.map((name) => `created ${name}`));
    expect(await actions('apply', shop)).toEqual(all.map((name) => `unchanged ${name}`));
    const changed = shop.replace('size: 1', 'size: 2').replace('10.0.0.1', '10.0.0.2');
    expect((await run(['diff', '-f', '-', '--exit-code'], changed)).code).toBe(1);
    expect(await actions('apply', changed)).toContain('updated file-share uploads');
    expect(await data('file-share', 'show', 'uploads')).toMatchObject({ size: 2 });
    expect(await data('file-share', 'access-rule', 'list', 'uploads')).toMatchObject([{ access_to: '10.0.0.2' }]);
    expect(await actions('diff', changed)).toEqual([]);
    const { name: project } = await data('project', 'show', '1');
    const rest = `{kind: network, name: shop, project: ${project}, tags: {app: shop}}`;
    expect(await actions('apply', rest, '--prune', 'app=shop')).toEqual([
      'unchanged network shop',
      'deleted load-balancer shop',
      'deleted file-share uploads',
    ]);
    expect((await data('network', 'list')).map(({ name }: { name: string }) => name)).toContain('default');
  });

  it('creates a project and resources in it', async () => {
    const file = join(yard.folder, 'annex.yaml');
    writeFileSync(file, '- {kind: network, name: inner, project: annex}\n- {kind: project, name: annex}\n');
    const apply = () => data('apply', '-f', file, '--columns', 'action,name');
    const rows = (action: string) => [
      { action, name: 'annex' },
      { action, name: 'inner' },
    ];
    expect(await apply()).toEqual(rows('created'));
    expect(await apply()).toEqual(rows('unchanged'));
    writeFileSync(file, '{kind: project, name: annex, description: changed}');
    expect(await apply()).toEqual([{ action: 'updated', name: 'annex' }]);
    expect(await data('project', 'show', 'annex')).toMatchObject({ description: 'changed' });
    expect(await data('project', 'show', '1')).not.toMatchObject({ description: 'changed' });
  });

  it('names every fault with its place and changes nothing', async () => {
    const file = join(yard.folder, 'bad.yaml');
    writeFileSync(file, shop.replace('size: 1', 'size: big').replace('kind: load-balancer', 'kind: balancer'));
    const bad = await run(['apply', '-f', file]);
    expect(bad).toMatchObject({ code: 2, stdout: '' });
    expect(bad.stderr).toMatch(
      new RegExp(`^cloudyard: ${file}:8:7: unknown kind "balancer".*\n${file}:15:9: size must be integer\n$`),
    );
    const lost = await run(['apply', '-f', '-'], shop.replace('network_id: shop', 'network_id: nowhere'));
    expect(lost).toMatchObject({ code: 1, stderr: 'cloudyard: standard input:12:3: network nowhere not found\n' });
    const balancers = (await data('load-balancer', 'list')) as { name: string }[];
    expect(balancers.map(({ name }) => name)).not.toContain('shop');
    const fixed = await run(
      ['diff', '-f', '-'],
      `${shop}\n---\nkind: volume\nname: disk\nsource: new-volume\nsize: 1\ntype_name: cold`,
    );
    expect(fixed).toMatchObject({ code: 1, stdout: '' });
    expect(fixed.stderr).toMatch(/^cloudyard: standard input:\d+:12: volume disk cannot change /m);
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
