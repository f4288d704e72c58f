/** Operator commands on real processes. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { findOtherOwner } from '../../src/main/data-directory-owner.ts';
import { root } from '../../src/platform/program-files.ts';
import { liveProcess } from '../../src/platform/running-processes.ts';
import { httpClient } from '../http-client.ts';
import { bootstrapToken, openYard, type Running, type Yard } from '../processes.ts';
import { requires, skipReason } from '../requires.ts';
import { until } from '../until.ts';
import { createMany, expectHostEqualsRows } from './storm.ts';

vi.setConfig({ testTimeout: 300_000 });

const parts = ['nfs-ganesha', 'libnfs-utils', 'xfsprogs', 'root'] as const;
const runsGanesha = requires(...parts);
const nothingRuns = { postgres: null, ganesha: null, rpcbind: null, haproxy: null };
const simulated = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' };
const empty = { isEmpty: true };

let yard: Yard;
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  yard?.cleanUp();
});

/** Occupies a port; does nothing when it is in use already. */
async function occupy(port: number): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve) => server.once('error', () => resolve()).listen(port, '127.0.0.1', resolve));
  servers.push(server);
}

const adopted = (running: Running) =>
  running
    .log()
    .filter(({ msg }) => msg === 'daemon adopted')
    .map(({ daemon }) => daemon);

describe('start', () => {
  it('prints a URL, a valid token, the reference page and the simulated drivers', async () => {
    yard = await openYard({ ...simulated, CLOUDYARD_BOOTSTRAP_TOKEN: '' }, empty);
    const server = await yard.startByBin(['start']);
    const [, url] = /^ {2}API +(http:\S+)$/m.exec(server.stdout())!;
    const [, token] = /^ {2}Token +(\S+\$\S+)$/m.exec(server.stdout())!;
    const [, reference] = /^ {2}Reference +(\S+)$/m.exec(server.stdout())!;
    expect(server.stdout()).toMatch(/file shares +simulated +SIMULATED +\S/);
    expect(server.stdout()).toMatch(/load balancers +simulated +SIMULATED +\S/);
    expect(server.stdout()).toMatch(/volumes +simulated +SIMULATED +\S/);
    expect(server.stdout()).toMatch(/e-mail +simulated +SIMULATED +.*CLOUDYARD_SMTP_URL/);
    expect(server.stdout()).toMatch(/webhooks +webhook +real +\S/);
    expect((await httpClient(url!, token!).get('/cloud/v1/projects')).body).toMatchObject({ count: 1 });
    expect((await fetch(reference!)).status).toBe(200);

    await server.stop();
    const again = await yard.startByBin(['start']);
    expect(again.stdout()).not.toContain(token);
    expect((await httpClient(url!, token!).get('/cloud/v1/projects')).status).toBe(200);
  });

  it('uses the next free port if CLOUDYARD_PORT is not set, and prints the change', async () => {
    yard = await openYard({ ...simulated, CLOUDYARD_PORT: '' });
    await occupy(8080);
    const server = await yard.start(['start']);
    const [, port] = /^ {2}API +http:\/\/127\.0\.0\.1:(\d+)$/m.exec(server.stdout())!;
    expect(Number(port)).toBeGreaterThan(8080);
    expect(Number(port)).toBeLessThanOrEqual(8100);
    expect(server.stdout()).toContain(`(port 8080 is in use by another program, so the API listens on port ${port})`);
  });

  it('exits 1 and stops its child processes when the port of CLOUDYARD_PORT stays busy', async () => {
    yard = await openYard(simulated);
    await occupy(yard.port);
    const { code, stderr } = await yard.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toContain(`port ${yard.port} on 127.0.0.1 is in use by another program; set CLOUDYARD_PORT`);
    expect(yard.pids()).toEqual(nothingRuns);
  });

  it('exits 1 on a data directory in use and names the holder, which keeps running', async () => {
    yard = await openYard(simulated);
    const first = await yard.start(['start']);
    const { code, stderr } = await yard.run(['start'], { CLOUDYARD_PORT: '0' });
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`data directory ${yard.dataDir} is in use by .*process ${first.pid}`));
    const task = await yard.ended(await (await createMany(yard, 1)).answers.then(([answer]) => answer!));
    expect(task.state).toBe('FINISHED');
  });

  it('recovers from a stale postmaster.pid that names an unrelated process', async () => {
    yard = await openYard(simulated);
    await (await yard.start(['start'])).stop();
    const pidFile = join(yard.dataDir, 'postgres/data/postmaster.pid');
    writeFileSync(pidFile, `${process.pid}\n${yard.dataDir}/postgres/data\n`);
    await yard.start(['start']);
    expect((await yard.get('/readyz')).status).toBe(200);
  });

  it('ends when its launcher is killed, or npm, so that it can be started again', async () => {
    yard = await openYard(simulated);
    const launched = await yard.startByBin(['start']);
    await launched.kill();
    const npm = join(yard.folder, 'npm.mjs');
    const script = `import { spawn } from 'node:child_process';
      spawn(process.execPath, ['${root}/bin/cloudyard.mjs', 'start'], { stdio: 'inherit' });`;
    writeFileSync(npm, script);
    const byNpm = await yard.startFile(npm, [], { npm_package_json: join(root, 'package.json') });
    await byNpm.kill();
    await until(() => findOtherOwner(yard.dataDir) === null, 10, 'the end of the server');
    expect((await (await yard.start(['start'])).stop()).code).toBe(0);
  });

  it('stops in order when its terminal is closed, which SIGHUP reports', async () => {
    yard = await openYard({ ...simulated, CLOUDYARD_PROCESSES: '2' });
    const server = await yard.startByBin(['start']);
    server.signal('SIGHUP');
    expect((await server.ended).code).toBe(0);
    expect(server.log()).toContainEqual(expect.objectContaining({ msg: 'stopping', signal: 'SIGHUP' }));
    expect(yard.pids()).toEqual(nothingRuns);
  });

  it('ignores SIGUSR1, with which Node would open its debugger', async () => {
    yard = await openYard(simulated);
    const server = await yard.startByBin(['start']);
    const [{ pid }] = server.log() as [{ pid: number }];
    server.signal('SIGUSR1');
    process.kill(pid, 'SIGUSR1');
    expect((await yard.get('/readyz')).status).toBe(200);
    expect((await server.stop()).stderr).toBe('');
  });

  it('exits at once and leaves no process when it is interrupted during the start', async () => {
    yard = await openYard(simulated, empty);
    const starting = yard.spawn(['start']);
    starting.signal('SIGINT');
    await starting.ended;
    expect(yard.pids()).toEqual(nothingRuns);
    const again = yard.spawn(['start']);
    await expect.poll(() => again.stdout(), { timeout: 60_000, interval: 5 }).toContain('daemon started');
    expect((await again.stop()).code).toBe(0);
    expect(yard.pids()).toEqual(nothingRuns);
    await yard.start(['start']);
  });
});

/** The kernel frees a loop device when its last user has closed it, which may be another mount namespace that ends. */
async function expectNothingLeft(): Promise<void> {
  expect([yard.pids(), yard.mounts()]).toEqual([nothingRuns, []]);
  await expect.poll(() => yard.loopDevices()).toEqual([]);
}

describe.skipIf(!runsGanesha)(skipReason(...parts) ?? 'start with real shares', () => {
  it('stops all its processes on Ctrl-C and leaves no mount', async () => {
    yard = await openYard();
    const server = await yard.startByBin(['start']);
    await Promise.all((await (await createMany(yard, 3)).answers).map((answer) => yard.ended(answer)));
    expect(yard.mounts()).toHaveLength(3);
    const { postgres, ganesha } = yard.pids();
    expect([postgres, ganesha].map((pid) => liveProcess(pid!))).not.toContain(null);
    expect(await server.stop()).toMatchObject({ code: 0, stderr: '' });
    await expectNothingLeft();
  });

  it('adopts the PostgreSQL and Ganesha processes of a killed server', async () => {
    yard = await openYard();
    const killed = await yard.start(['start']);
    await Promise.all((await (await createMany(yard, 2)).answers).map((answer) => yard.ended(answer)));
    // All Cloudyards of this machine share the rpcbind on port 111, and another test may stop it at any time.
    const { rpcbind: _, ...orphans } = yard.pids();
    await killed.kill();
    const server = await yard.start(['start']);
    expect(adopted(server)).toEqual(expect.arrayContaining(['postgres', 'ganesha']));
    expect(yard.pids()).toMatchObject(orphans);
    await expectHostEqualsRows(yard);
    await server.stop();
    await expectNothingLeft();
  });

  it('reports a busy NFS port instead of simulating file shares, and serves them when the port is free', async () => {
    yard = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: 'ganesha' });
    await occupy(yard.nfsPort);
    const server = await yard.start(['start']);
    expect(server.stdout()).toMatch(new RegExp(`file shares +ganesha +real, UNHEALTHY .*port ${yard.nfsPort}`));
    const waiting = (await createMany(yard, 1)).answers.then(([answer]) => yard.ended(answer!));
    for (const each of servers.splice(0)) each.close();
    expect((await waiting).state).toBe('FINISHED');
    await expectHostEqualsRows(yard);
    await server.stop();
  });
});

describe('other commands', () => {
  it('exit 2 with a one-line error and the usage of that command when the command line is wrong', async () => {
    yard = await openYard(simulated, empty);
    for (const [args, usage] of [
      [['strat'], 'COMMAND'],
      [['worker'], 'worker --region N'],
      [['worker', '--region', 'x'], 'worker --region N'],
      [['token'], 'token create|list|revoke'],
      [['token', 'create', '--rol', 'a'], 'token create [--client N]'],
    ] as const) {
      const { code, stderr } = await yard.run([...args]);
      expect([args, code]).toEqual([args, 2]);
      expect(stderr.trimEnd().split('\n')).toEqual([
        expect.stringMatching(/^cloudyard: \S/),
        expect.stringContaining(`usage: cloudyard ${usage}`),
      ]);
    }
    expect(existsSync(join(yard.dataDir, 'postgres'))).toBe(false);
  });

  it('exit 2 with every invalid setting and warn about unknown settings', async () => {
    yard = await openYard({
      ...simulated,
      CLOUDYARD_PORT: 'http',
      CLOUDYARD_CLIENT_REQUESTS_PER_SECOND: '-1',
      CLOUDYARD_PROT: '80',
    });
    const { code, stderr } = await yard.run(['start']);
    expect(code).toBe(2);
    expect(stderr).toContain('CLOUDYARD_PORT is "http"');
    expect(stderr).toContain('CLOUDYARD_CLIENT_REQUESTS_PER_SECOND is "-1"');
    const valid = { CLOUDYARD_PORT: '80', CLOUDYARD_CLIENT_REQUESTS_PER_SECOND: '0' };
    const misspelled = await yard.run(['doctor'], valid);
    expect(misspelled.stderr).toContain('unknown setting CLOUDYARD_PROT; did you mean CLOUDYARD_PORT?');
    const agent = await yard.run(['host', '--region', '1'], valid);
    expect(agent.stderr).toContain('an agent needs the database of its region; set DATABASE_URL');
    expect(agent.code).toBe(2);
  });

  it('exit 2 with the place of an error in a configuration file, because a repetition does not help', async () => {
    yard = await openYard(simulated);
    const file = join(yard.folder, 'regions.yaml');
    const own = { CLOUDYARD_REGIONS_FILE: file };
    writeFileSync(file, 'regions: [{ id: one }]\n');
    for (const args of [['start'], ['serve'], ['worker', '--region', '1']]) {
      const { code, stderr } = await yard.run(args, own);
      expect([args, code, stderr]).toEqual([args, 2, expect.stringContaining(`${file}:1:17: regions.0.id: must be`)]);
    }
    writeFileSync(file, 'regions: [{ id: 7, display_name: seven, country: LU }]\n');
    const other = await yard.run(['worker', '--region', '99'], own);
    const missing = `cloudyard: region 99 is not in ${file}, which has region 7\n`;
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining(missing)]);
    rmSync(file);
    const { code, stderr } = await yard.run(['serve'], own);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${file} cannot be read (ENOENT)`)]);
  });

  it('exit 1 with the unreachable database and without its password', async () => {
    yard = await openYard({ ...simulated, DATABASE_URL: 'postgres://me:pa55word@localhost:9/nowhere' });
    for (const args of [['start'], ['migrate']]) {
      const { code, stderr } = await yard.run(args);
      expect(code).toBe(1);
      expect(stderr).toContain(
        'the database postgres://me:…@localhost:9/nowhere cannot be reached: connect ECONNREFUSED',
      );
    }
  });

  it('print help, the version, the installed programs and the state of the database, and leave no process running', async () => {
    yard = await openYard({}, empty);
    expect((await yard.run(['help'])).stdout).toContain('token revoke ID');
    expect((await yard.run(['token', '--help'])).stdout).toMatch(/^usage: cloudyard token create\|list\|revoke\n/);
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect((await yard.run(['--version'])).stdout).toBe(`cloudyard ${version}\n`);
    expect((await yard.run(['doctor'])).stdout).toMatch(
      /IANA \d{4}[a-z][\s\S]*Drivers on this host[\s\S]*file shares +(ganesha|simulated)[\s\S]*load balancers +(haproxy|simulated)/,
    );
    for (const _ of ['first', 'again']) {
      expect(await yard.run(['migrate'])).toMatchObject({ code: 0, stdout: expect.stringContaining('up to date') });
    }
    expect(yard.pids()).toEqual(nothingRuns);
    const server = await yard.start(['start'], simulated);
    expect((await yard.get('/cloud/v1/projects', { token: bootstrapToken })).status).toBe(200);
    await server.stop();
  });
});
