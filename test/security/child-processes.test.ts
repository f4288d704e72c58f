/** Secrets of a server that its child processes could read: environment, arguments, core dumps. All daemons are real. */
import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../free-port.ts';
import { root } from '../../src/platform/program-files.ts';
import { readOrEmpty } from '../../src/platform/read-or-empty.ts';
import { parentOf, pidsOfHost } from '../../src/platform/running-processes.ts';
import { openYard, type Running, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 });

const parts = ['root', 'nfs-ganesha', 'xfsprogs', 'haproxy', 'nginx', 'docker-registry', 'qemu-utils'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'secrets of a server with all its daemons', () => {
  const secret = Object.fromEntries(
    ['token', 'smtp', 'database', 'password', 'other'].map((of) => [of, randomBytes(12).toString('hex')]),
  ) as Record<'token' | 'smtp' | 'database' | 'password' | 'other', string>;
  const secrets = Object.values(secret);
  /** Environments of all children, including short-lived ones, by command line. */
  const seen = new Map<string, string>();
  let yard: Yard;
  let servers: Running[];
  let watching: NodeJS.Timeout;

  const scan = () => {
    const children = processes();
    for (const { pid } of servers) {
      // A child has the arguments and environment of the server until it runs its own program.
      const ownLine = read(pid, 'cmdline');
      for (const child of descendants(pid, children)) {
        const [commandLine, environment] = [read(child, 'cmdline'), read(child, 'environ')];
        if (commandLine && commandLine !== ownLine) seen.set(`${commandLine} (pid ${child})`, environment);
      }
    }
  };

  beforeAll(async () => {
    const mailServer = `127.0.0.1:${await freePort()}`;
    yard = await openYard({
      CLOUDYARD_FILE_SHARE_DRIVER: 'ganesha',
      CLOUDYARD_LOAD_BALANCER_DRIVER: 'haproxy',
      CLOUDYARD_VOLUME_DRIVER: 'disk',
      CLOUDYARD_REGISTRY_DRIVER: 'distribution',
      CLOUDYARD_REGISTRY_PORT: String(await freePort()),
      CLOUDYARD_BOOTSTRAP_TOKEN: `children$${secret.token}`,
      CLOUDYARD_SMTP_URL: `smtp://cloudyard:${secret.smtp}@${mailServer}`,
      CLOUDYARD_SMTP_FROM: 'alerts@example.com',
      PGPASSWORD: secret.password,
      SECRET_THING: secret.other,
    });
    // The first has the embedded PostgreSQL as its child; the second has all other daemons and a database URL.
    const api = await yard.start(['serve']);
    servers = [api];
    const url = yard.databaseUrl().replace('@', `:${secret.database}@`);
    const worker = await yard.start(['worker', '--region', '1'], { DATABASE_URL: url });
    servers.push(worker);
    watching = setInterval(scan, 10);
    const token = `children$${secret.token}`;
    const post = async (path: string, body: object) => yard.request('POST', path, body, { token });
    const create = async (path: string, body: object) => {
      const { status, body: answer } = await post(path, body);
      expect([status, answer]).toEqual([200, { tasks: [expect.any(String)] }]);
      const ended = async () => (await yard.get(`/cloud/v1/tasks/${answer.tasks[0]}?wait=20`, { token })).body;
      let task: { finished_on: unknown; state: string };
      do task = await ended();
      while (!task.finished_on);
      expect(task).toMatchObject({ state: 'FINISHED' });
    };
    await create('/cloud/v1/loadbalancers/1/1', {
      name: 'both programs',
      listeners: [
        { name: 'tcp', protocol: 'HTTP', protocol_port: await freePort() },
        { name: 'udp', protocol: 'UDP', protocol_port: await freePort() },
      ],
    });
    await create('/cloud/v1/volumes/1/1', { name: 'a volume', source: 'new-volume', size: 1 });
    const { body: networks } = await yard.get('/cloud/v1/networks/1/1', { token });
    await create('/cloud/v1/file_shares/1/1', {
      name: 'a share',
      protocol: 'NFS',
      size: 1,
      type_name: 'standard',
      network: { network_id: networks.results[0].id },
    });
    const registry = await post('/cloud/v1/registries/1/1', { name: 'images' });
    expect(registry.status).toBe(201);
    await until(() => programs().has('docker-registry'), 30, 'distribution');
    scan();
    clearInterval(watching);
  });
  afterAll(() => {
    clearInterval(watching);
    yard?.cleanUp();
  });

  const programs = () => new Set([...seen.keys()].map((line) => line.split(/[\0 ]/)[0]!.split('/').at(-1)!));

  it('the test covers every daemon', () => {
    const expected = ['postgres', 'ganesha.nfsd', 'haproxy', 'nginx:', 'docker-registry'];
    expect([...programs()]).toEqual(expect.arrayContaining(expected));
  });

  it('are not in the environment of any child', () => {
    const leaks = [...seen].filter(([, environment]) => secrets.some((each) => environment.includes(each)));
    expect(leaks.map(([commandLine]) => commandLine.replaceAll('\0', ' '))).toEqual([]);
  });

  it('are not in the arguments of any process', () => {
    scan();
    const commandLines = [...seen.keys(), ...servers.map(({ pid }) => read(pid, 'cmdline'))];
    expect(commandLines.filter((line) => secrets.some((each) => line.includes(each)))).toEqual([]);
  });

  it('cannot be read from /proc by the account of PostgreSQL or any other account', () => {
    const accounts = new Set(
      servers.flatMap(({ pid }) => descendants(pid, processes()).map(accountOf)).concat('65534:65534'),
    );
    accounts.delete('0:0');
    expect(accounts.size).toBeGreaterThan(1);
    for (const account of accounts) {
      const all = asAccount(account, 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; true');
      expect(secrets.filter((each) => all.includes(each))).toEqual([]);
    }
  });

  it('cannot get into core dumps, because neither the servers nor their children write any', () => {
    const pids = servers.flatMap(({ pid }) => [pid, ...descendants(pid, processes())]);
    // Of 1 byte, unless this process was given a limit of 0.
    const limit = /^Max core file size +\S+ +0 /m.test(read(process.pid, 'limits')) ? /^0 +0$/ : /^1 +1$/;
    const limits = pids.map((pid) => /^Max core file size +(\S+ +\S+)/m.exec(read(pid, 'limits'))?.[1]);
    expect(new Set(limits.filter(Boolean))).toEqual(new Set([expect.stringMatching(limit)]));
  });

  it('no child of another account has a group of root', () => {
    const children = servers.flatMap(({ pid }) => descendants(pid, processes()));
    const others = children.filter((pid) => !accountOf(pid).startsWith('0:'));
    expect(others.length).toBeGreaterThan(0);
    const foreign = others.flatMap((pid) => {
      const groups = /^Groups:[ \t]*(.*?)[ \t]*$/m.exec(read(pid, 'status'))?.[1] ?? '';
      return groups.split(' ').filter((gid) => gid !== '' && !accountOf(pid).endsWith(`:${gid}`));
    });
    expect(foreign).toEqual([]);
  });

  it('other accounts cannot read files of the data directory', () => {
    const readable = (uid: number) =>
      asAccount(`${uid}:${uid}`, `find ${yard.dataDir} -readable 2>/dev/null; true`)
        .split('\n')
        .filter((path) => path !== '')
        .map((path) => path.slice(yard.dataDir.length));
    // The names of the folders are not secret, and PostgreSQL's account needs the path to its cluster.
    expect(readable(65534)).toEqual(['']);
    const postgres = statSync(`/proc/${yard.pids().postgres}`).uid;
    expect(readable(postgres).filter((path) => !path.startsWith('/postgres'))).toEqual(['']);
    expect(readable(postgres).filter((path) => path.startsWith('/postgres.'))).toEqual([]);
  });
});

describe('the installation of dependencies', () => {
  it('passes no settings to npm and the package scripts that it runs', () => {
    const folder = mkdtempSync(join(tmpdir(), 'cloudyard-install-'));
    try {
      cpSync(join(root, 'bin'), join(folder, 'bin'), { recursive: true });
      mkdirSync(join(folder, 'src'));
      cpSync(join(root, 'package.json'), join(folder, 'package.json'));
      const npm = join(folder, 'npm-cli.js');
      writeFileSync(npm, 'console.error(JSON.stringify(process.env)); process.exit(7);');
      const env = {
        PATH: process.env['PATH'],
        npm_execpath: npm,
        npm_config_registry: 'http://127.0.0.1:1/',
        CLOUDYARD_BOOTSTRAP_TOKEN: 'a$secret',
        DATABASE_URL: 'postgres://cloudyard:secret@db/cloudyard',
        PGPASSWORD: 'secret',
      };
      const ended = spawnSync(process.execPath, ['bin/cloudyard.mjs', 'start'], { cwd: folder, env, encoding: 'utf8' });
      expect([ended.status, ended.stderr]).toEqual([7, expect.stringContaining('"npm_config_registry"')]);
      expect(ended.stderr).not.toContain('secret');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** Runs a script as an account. Returns its output. */
function asAccount(account: string, script: string): string {
  const [uid, gid] = account.split(':') as [string, string];
  return execFileSync('setpriv', ['--reuid', uid, '--regid', gid, '--clear-groups', 'sh', '-c', script], {
    encoding: 'latin1',
    env: { PATH: process.env['PATH'] },
    maxBuffer: 2 ** 27,
  });
}

/** Parent process ids by process id. */
function processes(): Map<number, number> {
  return new Map(pidsOfHost().map((pid) => [pid, parentOf(pid)]));
}

function descendants(pid: number, parents: Map<number, number>): number[] {
  const children = [...parents].filter(([, parent]) => parent === pid).map(([child]) => child);
  return children.flatMap((child) => [child, ...descendants(child, parents)]);
}

/** `uid:gid`. */
function accountOf(pid: number): string {
  const id = (name: string) => new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(read(pid, 'status'))?.[1] ?? '0';
  return `${id('Uid')}:${id('Gid')}`;
}

/** Returns an empty text if the process has ended. */
function read(pid: number, file: string): string {
  return readOrEmpty(`/proc/${pid}/${file}`);
}
