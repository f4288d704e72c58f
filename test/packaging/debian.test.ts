/** The Debian packages as their users get them: contents, installation, a running server, upgrade and removal. */
import { execFileSync, spawnSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildDebianPackages } from '../../packaging/deb/build.ts';
import { buildPackage } from '../../packaging/npm-package.ts';
import { freePort } from '../free-port.ts';
import { version } from '../../src/main/version.ts';
import { httpClient } from '../http-client.ts';
import { until } from '../until.ts';
import { requires, skipReason } from '../requires.ts';
import { type DebianHost, openDebianHost, prepareDebianRoot } from './debian-host.ts';
import { emptyFolder } from './installed.ts';
import { connectToNoCeph, renderExample, reportOfBridge } from './parts-of-several-hosts.ts';

vi.setConfig({ testTimeout: 1_200_000, hookTimeout: 1_200_000 });

const [server, worker, agent] = ['cloudyard-serve.service', 'cloudyard-worker@.service', 'cloudyard-host@.service'];
const parts = ['root', 'mmdebstrap', 'lintian', 'systemd', 'binutils', 'groff', 'util-linux'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'the Debian packages', () => {
  let folder: string;
  let tree: string;
  let built: { file: string; installedBytes: number }[];
  // Tests do not wait for xz.
  const build = (name: string) => buildDebianPackages({ folder: join(folder, name), version, compression: 'none' });

  beforeAll(async () => {
    folder = emptyFolder();
    buildPackage();
    built = await build('first');
    tree = join(folder, 'tree');
    for (const { file } of built) execFileSync('dpkg-deb', ['-x', file, tree]);
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  it('are the same bytes in each build, and the server needs less than 120 MB', async () => {
    // Another complete build.
    vi.stubEnv('TZ', 'Asia/Tokyo');
    buildPackage();
    const again = await build('again');
    vi.unstubAllEnvs();
    for (const [index, { file }] of built.entries()) {
      expect(readFileSync(file).equals(readFileSync(again[index]!.file))).toBe(true);
    }
    rmSync(join(folder, 'again'), { recursive: true });
    expect(built[0]!.installedBytes).toBeLessThan(120e6);
  });

  it('are accepted by lintian', () => {
    const suppressed = 'uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball';
    const args = ['--fail-on', 'error,warning', '--allow-root', '--suppress-tags', suppressed];
    const lintian = spawnSync('lintian', [...args, ...built.map(({ file }) => file)], { encoding: 'utf8' });
    expect([lintian.status, lintian.stdout]).toEqual([0, '']);
  });

  it('contain units that systemd-analyze accepts', () => {
    const units = globSync('usr/lib/systemd/system/*', { cwd: tree }).sort();
    expect(units.map((path) => path.split('/').at(-1))).toEqual([agent, server, worker]);
    for (const path of units) {
      const [start, service] = readFileSync(join(tree, path), 'utf8').split('[Service]');
      expect(start).toContain('StartLimitIntervalSec=0');
      expect(service).toContain('RestartPreventExitStatus=2');
    }
    const names = [server, worker.replace('@', '@1'), agent.replace('@', '@1')];
    const args = ['verify', '--man=no', '--recursive-errors=no', '--root', tree, ...names];
    const verified = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    expect([verified.status, verified.stderr]).toEqual([0, '']);
    const exposure = ['security', '--offline=true', '--threshold=20', '--root', tree, server];
    expect(spawnSync('systemd-analyze', exposure, { encoding: 'utf8' })).toMatchObject({ status: 0 });
  });

  it('contain a manual page and completions without warnings', () => {
    const page = execFileSync('gunzip', ['-c', join(tree, 'usr/share/man/man1/cloudyard.1.gz')]);
    const rendered = spawnSync('groff', ['-ww', '-man', '-Tutf8', '-K', 'utf8'], { input: page, encoding: 'utf8' });
    expect([rendered.status, rendered.stderr]).toEqual([0, '']);
    expect(rendered.stdout).toContain('file-share');
    const completions = ['bash-completion/completions/cloudyard', 'zsh/vendor-completions/_cloudyard'];
    for (const path of [...completions, 'fish/vendor_completions.d/cloudyard.fish']) {
      expect(readFileSync(join(tree, 'usr/share', path), 'utf8')).toContain('cloudyard');
    }
    const script = '. "$1" && complete -p cloudyard';
    const bash = spawnSync('bash', ['-c', script, 'bash', join(tree, 'usr/share', completions[0]!)]);
    expect([bash.status, String(bash.stderr)]).toEqual([0, '']);
  });

  it('print pretty logs', () => {
    const library = join(tree, 'usr/lib/cloudyard');
    const program = join(library, 'print.cjs');
    writeFileSync(program, `require('pino')({ transport: { target: 'pino-pretty' } }).info('a line')`);
    expect(execFileSync(join(library, 'bin/node'), [program], { encoding: 'utf8' })).toMatch(/INFO.*: a line\n$/);
    rmSync(program);
  });

  it('find their parts for several hosts', () => {
    const library = join(tree, 'usr/lib/cloudyard');
    expect(connectToNoCeph(join(library, 'bin/node'), library)).toMatch(reportOfBridge);
    const rendered = renderExample(join(tree, 'usr/share/cloudyard/several-hosts'));
    expect(rendered['cloudyard.env']).toContain('CLOUDYARD_HOST_ADDRESS=10.77.0.11');
  });

  it('install, serve, upgrade, and are removed', async (context) => {
    const reason = prepareDebianRoot();
    if (reason) return context.skip(reason);
    const place = join(folder, 'host');
    mkdirSync(join(place, 'files'), { recursive: true });
    for (const { file } of built) execFileSync('cp', ['-l', file, join(place, 'files')]);
    for (const { file } of built) makeNewer(file, join(place, 'files'));
    const host = openDebianHost(place);
    try {
      await installAndRemove(host);
    } finally {
      host.close();
    }
  });

  /** The same files with a higher version. */
  function makeNewer(file: string, destination: string): void {
    const unpacked = mkdtempSync(join(folder, 'newer-'));
    execFileSync('dpkg-deb', ['-R', file, unpacked]);
    const control = join(unpacked, 'DEBIAN', 'control');
    writeFileSync(control, readFileSync(control, 'utf8').replace(/^(Version: .*)$/m, '$1+upgrade'));
    const name = file.split('/').at(-1)!.replace(version, `${version}+upgrade`);
    execFileSync('dpkg-deb', ['-Znone', '--build', unpacked, join(destination, name)], { stdio: 'pipe' });
    rmSync(unpacked, { recursive: true });
  }
});

const guide = readFileSync('docs/guides/backup-and-restore.md', 'utf8');
const install = 'apt-get install -q -y --no-install-recommends';

/** Runs commands that must succeed. */
const runsOn = (host: DebianHost) => async (command: string) => {
  const { code, output } = await host.run(command);
  expect({ command, code, output }).toMatchObject({ code: 0 });
  return output;
};

async function installAndRemove(host: DebianHost): Promise<void> {
  const run = runsOn(host);
  const port = await freePort();
  const installed = await run(`${install} /mnt/*_${version}_amd64.deb`);
  expect(installed).toContain('to create a token: cloudyard token create --role admin');
  await run(`sed -i 's/^CLOUDYARD_PORT=.*/CLOUDYARD_PORT=${port}/' /etc/cloudyard/cloudyard.env`);

  const started = await host.start(server);
  expect(started).toMatchObject({ ready: true, output: expect.not.stringMatching(/Token +\S+\$/) });
  const token = /\S+\$\S+/.exec(await run('cloudyard token create --role admin'))![0];
  const { get, post } = httpClient(`http://127.0.0.1:${port}`, token);
  const refused = await host.run('HOME=/tmp/other setpriv --reuid nobody --clear-groups cloudyard token create');
  expect(refused).toMatchObject({ code: 2, output: expect.stringContaining('run the command as root') });
  expect(await host.start(worker, '1')).toMatchObject({ ready: true });
  const network = (await get('/cloud/v1/networks/1/1')).body['results'][0].id as string;
  const share = { name: 'first', protocol: 'NFS', size: 1, network: { network_id: network } };
  const [task] = (await post('/cloud/v1/file_shares/1/1', share)).body['tasks'] as string[];
  expect((await get(`/cloud/v1/tasks/${task}?wait=60`)).body).toMatchObject({ state: 'FINISHED' });
  expect((await get('/docs/js/scalar.js')).body).toContain('createApiReference');
  for (const unit of [server, worker]) {
    await until(async () => (await host.messages(unit)).includes('WATCHDOG=1'), 30, `a watchdog message of ${unit}`);
  }

  const upgraded = await run(`${install} /mnt/*_${version}+upgrade_amd64.deb`);
  expect(upgraded).toContain(`${version}+upgrade`);
  expect(await host.stop(worker, 'INT')).toMatchObject({ code: 0 });
  expect(await host.stop(server, 'TERM')).toMatchObject({ code: 0 });
  expect(await host.messages(server)).toContain('STOPPING=1');
  expect((await host.processes()).filter((line) => /postgres|cloudyard\.js/.test(line))).toEqual([]);
  expect(await host.start(server)).toMatchObject({ ready: true });
  expect((await get('/cloud/v1/file_shares/1/1')).body['results']).toMatchObject([{ name: 'first' }]);
  expect(await host.stop(server, 'TERM')).toMatchObject({ code: 0 });

  await restoreAsTheGuide(host, run);
  expect((await get('/cloud/v1/file_shares/1/1')).body['results']).toMatchObject([{ name: 'first' }]);
  expect(await host.stop(server, 'TERM')).toMatchObject({ code: 0 });

  await removeDatabaseAlone(host, run, async () => {
    expect((await get('/cloud/v1/file_shares/1/1')).body['results']).toMatchObject([{ name: 'first' }]);
  });

  const removed = await run('apt-get remove -q -y cloudyard cloudyard-postgresql');
  expect(removed).not.toContain('cannot run without a database');
  await run('test ! -e /usr/lib/cloudyard && test -s /etc/cloudyard/cloudyard.env');
  await run('test -d /var/lib/cloudyard/api/postgres');
  await run('apt-get purge -q -y cloudyard cloudyard-postgresql');
  await run('test ! -e /etc/cloudyard && test ! -e /var/lib/cloudyard && test ! -e /var/cache/cloudyard');
}

/** The backup and the restore of docs/guides/backup-and-restore.md, with the data of the worker. The server runs afterwards. */
async function restoreAsTheGuide(host: DebianHost, run: ReturnType<typeof runsOn>): Promise<void> {
  const [api, data] = ['/var/lib/cloudyard/api', '/var/lib/cloudyard/worker-1'];
  const section = /### Restore with the Debian packages[^]*?(?=\n## )/.exec(guide)![0];
  const blocks = [...section.matchAll(/```sh\n([^]*?)```/g)].map(([, block]) =>
    block!.replace(/^systemctl .*\n/gm, ''),
  );
  const refused = await host.run('cloudyard backup --with-data');
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining('pass the data directory of the worker') });
  const restore = async (contents: RegExp) => {
    expect(await run(`cloudyard backup --with-data --data-dir ${data}`)).toMatch(contents);
    for (const block of blocks) await run(`set -e\n${block}`);
    expect(await run(`stat --format %U ${api}/secret.keys`)).toBe('cloudyard\n');
    expect(await run(`cat ${api}/secret.keys`)).toBe(await run(`cat ${api}.old/secret.keys`));
    expect(await run(`ls ${data}`)).toMatch(/^(file-shares|volumes|registries)$/m);
    await run(`rm -r ${api}.old ${data}.old`);
  };
  // The default.
  await restore(/rows, \d+ files; /);
  await run('echo correct-horse >/root/backup.passphrase');
  await run('echo CLOUDYARD_BACKUP_PASSPHRASE_FILE=/root/backup.passphrase >>/etc/cloudyard/cloudyard.env');
  await restore(/rows, \d+ files, keys; /);
  // The settings of the services apply, also without the data directory.
  await run(`mv ${api} ${api}.old`);
  expect((await host.run('cloudyard restore --list')).output).toContain(`${api}/backups does not exist`);
  await run(`rm -rf ${api} && mv ${api}.old ${api}`);
  expect(await host.start(server)).toMatchObject({ ready: true });
}

/** The package of the database goes and returns, and cloudyard stays. No service runs before and after it. */
async function removeDatabaseAlone(
  host: DebianHost,
  run: ReturnType<typeof runsOn>,
  expectData: () => Promise<void>,
): Promise<void> {
  const remove = 'apt-get remove -q -y cloudyard-postgresql';
  const add = `${install} /mnt/cloudyard-postgresql_${version}+upgrade_amd64.deb`;
  const settings = '/etc/cloudyard/cloudyard.env';
  const refusal = 'cloudyard cannot run without a database; its data stays in /var/lib/cloudyard';
  expect(await run(remove)).toContain(refusal);
  await run('test -x /usr/lib/cloudyard/bin/node && test -d /var/lib/cloudyard/api/postgres');
  expect(await host.start(server)).toMatchObject({
    ready: false,
    output: expect.stringContaining('the embedded PostgreSQL is not installed (Debian package cloudyard-postgresql, '),
  });
  await run(add);
  expect(await host.start(server)).toMatchObject({ ready: true });
  await expectData();
  expect(await host.stop(server, 'TERM')).toMatchObject({ code: 0 });

  // What the scripts say to systemd, which does not run here.
  const wanted = '/etc/systemd/system/multi-user.target.wants';
  await run(`mkdir -p /run/systemd/system ${wanted} && mv /usr/bin/systemctl /root/`);
  await run(`printf '#!/bin/sh\\necho systemctl "$@"\\n' >/usr/bin/systemctl && chmod +x /usr/bin/systemctl`);
  await run(`ln -s /usr/lib/systemd/system/${worker} ${wanted}/cloudyard-worker@2.service`);
  const services = (output: string) => output.match(/^systemctl (start|stop) .*$/gm);
  const alone = await run(remove);
  expect(services(alone)).toEqual(
    ['stop cloudyard-worker@*.service', `stop ${server}`].map((line) => `systemctl ${line}`),
  );
  expect(alone).toContain(refusal);
  expect(services(await run(add))).toEqual([`systemctl start ${server}`, 'systemctl start cloudyard-worker@2.service']);
  await run(`cp -a ${settings} /root/ && echo DATABASE_URL=postgres://other.example/cloudyard >>${settings}`);
  const unused = await run(remove);
  expect([services(unused), unused]).toEqual([null, expect.not.stringContaining(refusal)]);
  await run(`mv /root/cloudyard.env ${settings} && rm -r /run/systemd/system ${wanted}/cloudyard-worker@2.service`);
  await run(`mv /root/systemctl /usr/bin/systemctl && ${add}`);
}
