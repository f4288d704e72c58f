/**
 * The database of several hosts as docs/several-hosts.md installs it: on each host etcd, PostgreSQL under Patroni, and
 * HAProxy, which serves the primary at 127.0.0.1. Their files are those of packaging/several-hosts.
 */
import { type ChildProcess, execFileSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../../src/platform/program-files.ts';
import { succeeds } from '../../src/platform/succeeds.ts';
import { until } from '../until.ts';
import { postgresPrograms } from '../requires.ts';
import { findServiceAccount } from '../../src/platform/service-account.ts';
import type { Lab, LabNode } from './lab.ts';

const packaging = join(root, 'packaging', 'several-hosts');
const passwords = ['SUPERUSER', 'REPLICATION', 'REWIND', 'CLOUDYARD', 'PATRONI'].map((name) => `${name}_PASSWORD`);

export interface SharedDatabase {
  /** The rendered files of a host. */
  files(host: LabNode): string;
  /** The variables of its cloudyard.env. */
  cloudyardEnv(host: LabNode): Record<string, string>;
  /** Starts the programs of a host, at first or after `die` and `boot`. */
  start(host: LabNode): Promise<void>;
  primary(): Promise<LabNode>;
  /** Whether one of these hosts accepts changes, as HAProxy sees it. */
  hasPrimary(hosts: LabNode[]): Promise<boolean>;
  /** Resolves when one of these hosts has been promoted, with that time by `performance.now()`. */
  promotedAt(hosts: LabNode[]): Promise<number>;
  /** Resolves when each of these hosts has a standby or the primary, and one of the standbys is synchronous. */
  replicating(hosts: LabNode[]): Promise<void>;
  /** Rows of a statement on the primary. Works while a live host is given. */
  sql(host: LabNode, statement: string): Promise<string[]>;
  /** The postmaster of a host. */
  postmaster(host: LabNode): number;
}

interface Member {
  name: string;
  role: 'leader' | 'replica' | 'sync_standby';
  state: string;
}

export async function startDatabase(lab: Lab): Promise<SharedDatabase> {
  const folder = dirname(lab.hosts[0]!.folder);
  // PostgreSQL runs as another account, which must be able to enter the folder.
  chmodSync(folder, 0o755);
  const account = findServiceAccount('postgres')!;
  const asPostgres = ['--reuid', 'postgres', '--regid', 'postgres', '--init-groups'];
  const programs = new Map<string, ChildProcess[]>();

  const ownFolder = (host: LabNode, name: string) => {
    const path = join(host.folder, name);
    mkdirSync(path, { recursive: true });
    chownSync(path, account.uid, account.gid);
    return path;
  };
  const files = (host: LabNode) => join(host.folder, 'etc');
  for (const host of lab.hosts) {
    chmodSync(host.folder, 0o755);
    const plan = join(host.folder, 'hosts.env');
    writeFileSync(plan, planFor(host, ownFolder(host, 'etcd'), ownFolder(host, 'postgres')));
    execFileSync(join(packaging, 'render'), [plan, host.name, files(host)]);
    // That of the package.
    copyFileSync(join(root, 'config', 'quotas.yaml'), join(files(host), 'quotas.yaml'));
    chmodSync(files(host), 0o755);
    chownSync(join(files(host), 'patroni.yml'), account.uid, account.gid);
  }

  const launch = (host: LabNode, name: string, file: string, args: string[], env: Record<string, string> = {}) => {
    const log = openSync(join(host.folder, `${name}.log`), 'a');
    const child = host.spawn(file, args, { stdio: ['ignore', log, log], env: { ...process.env, ...env } });
    programs.set(host.name, [...(programs.get(host.name) ?? []), child]);
  };
  const start = async (host: LabNode) => {
    await host.run('sysctl', ['-qp', join(files(host), 'sysctl.conf')]);
    launch(host, 'etcd', 'setpriv', [...asPostgres, 'etcd'], variablesIn(join(files(host), 'etcd')));
    launch(host, 'patroni', 'setpriv', [...asPostgres, 'patroni', join(files(host), 'patroni.yml')], {
      HOME: join(host.folder, 'postgres'),
      LANG: 'C.UTF-8',
    });
    launch(host, 'haproxy', 'haproxy', ['-db', '-f', join(files(host), 'haproxy.cfg')]);
  };

  /** As Patroni of any live host reports them. */
  const members = async (): Promise<Member[]> => {
    for (const host of lab.hosts) {
      if (host.pids().length === 0) continue;
      const url = `http://${host.address}:8008/cluster`;
      const answer = await host.run('curl', ['-sf', '-m', '2', url]).catch(() => null);
      if (answer) return (JSON.parse(answer.stdout) as { members: Member[] }).members;
    }
    return [];
  };
  const replicating = (hosts: LabNode[]) =>
    until(
      async () => {
        const all = await members();
        const running = all.filter(({ name, role, state }) => {
          return (
            hosts.some((host) => host.name === name) &&
            (role === 'leader' ? 'running' : 'streaming running').includes(state)
          );
        });
        return (
          running.length === hosts.length &&
          ['leader', 'sync_standby'].every((role) => running.some((m) => m.role === role))
        );
      },
      120,
      'replication between all hosts',
    );
  const primary = async () => {
    let leader: LabNode | undefined;
    await until(
      async () => {
        const found = (await members()).find(({ role, state }) => role === 'leader' && state === 'running');
        leader = lab.hosts.find(({ name }) => name === found?.name);
        return leader;
      },
      60,
      'a primary',
    );
    return leader!;
  };
  const fromLab = (url: string) => succeeds(lab.clients[0]!.run('curl', ['-sf', '-m', '1', '-o', '/dev/null', url]));
  const psql = async (host: LabNode, database: string, statement: string) => {
    const { DATABASE_PORT, SUPERUSER_PASSWORD } = variablesIn(join(host.folder, 'hosts.env'));
    const url = `postgres://postgres:${SUPERUSER_PASSWORD}@127.0.0.1:${DATABASE_PORT}/${database}`;
    const { stdout } = await host.run('psql', [url, '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', statement]);
    return stdout.split('\n').filter(Boolean);
  };

  const hasPrimary = async (hosts: LabNode[]) =>
    (await Promise.all(hosts.map(({ address }) => fromLab(`http://${address}:8008/primary`)))).includes(true);

  for (const host of lab.hosts) await start(host);
  await replicating(lab.hosts);
  const [first] = lab.hosts;
  const { DATABASE_PASSWORD } = variablesIn(join(first!.folder, 'hosts.env'));
  await until(() => succeeds(psql(first!, 'postgres', 'select')), 30, 'HAProxy');
  await psql(first!, 'postgres', `create role cloudyard login password '${DATABASE_PASSWORD}'`);
  await psql(first!, 'postgres', 'grant pg_read_all_stats to cloudyard');
  await psql(first!, 'postgres', 'create database cloudyard owner cloudyard');

  return {
    files,
    cloudyardEnv: (host) => variablesIn(join(files(host), 'cloudyard.env')),
    start,
    primary,
    hasPrimary,
    async promotedAt(hosts) {
      await until(() => hasPrimary(hosts), 60, 'a promotion');
      return performance.now();
    },
    replicating,
    sql: (host, statement) => psql(host, 'cloudyard', statement),
    postmaster: (host) =>
      Number(readFileSync(join(host.folder, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]),
  };
}

/** The example with the directories of this host, and passwords. The addresses are those of the lab. */
function planFor(host: LabNode, etcd: string, postgres: string): string {
  const own = {
    ETCD_DATA: join(etcd, 'data'),
    POSTGRES_PROGRAMS: postgresPrograms()!,
    POSTGRES_DATA: join(postgres, 'data'),
    POSTGRES_RUN: postgres,
    CLOUDYARD_ETC: join(host.folder, 'etc'),
    CLOUDYARD_KEY_FILE: join(dirname(host.folder), 'secret.keys'),
    ...Object.fromEntries(passwords.map((name) => [name, `${name.toLowerCase()}-of-the-test`])),
  };
  const lines = readFileSync(join(packaging, 'hosts.env'), 'utf8').split('\n');
  return lines
    .map((line) => {
      const [name = ''] = line.split('=');
      return name in own ? `${name}=${own[name as keyof typeof own]}` : line;
    })
    .join('\n');
}

/** `NAME=value` lines. */
function variablesIn(file: string): Record<string, string> {
  const lines = readFileSync(file, 'utf8').split('\n');
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, name, value] = /^([A-Z_0-9]+)=(.*)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, value!.replace(/^'(.*)'$/, '$1')]];
    }),
  );
}
