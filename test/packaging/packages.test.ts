/** The npm package as its users get it: its contents, and a server that runs from it. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildPackage, pack } from '../../packaging/npm-package.ts';
import { root } from '../../src/platform/program-files.ts';
import { httpClient } from '../http-client.ts';
import { processesOf } from '../processes.ts';
import { until } from '../until.ts';
import { emptyFolder, install, pinnedPath } from './installed.ts';
import { connectToNoCeph, renderExample, reportOfBridge } from './parts-of-several-hosts.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

let folder: string;

beforeAll(() => {
  folder = emptyFolder();
  buildPackage();
});

afterAll(() => {
  for (const pid of processesOf(folder)) process.kill(pid, 'SIGKILL');
  rmSync(folder, { recursive: true });
});

describe('the npm package', () => {
  it('contains the bundled server, the console, the configuration and the migrations, and nothing else', () => {
    const inCheckout = (pattern: string) => globSync(pattern, { cwd: root });
    const programs = ['main/cloudyard.js', 'client/start.js', 'drivers/distribution/gate/main.js'];
    const others = ['client/first-words.json', 'drivers/ceph/bridge.py', 'package.json', 'licences.txt'];
    const built = [...programs, ...others].map((path) => `dist/${path}`);
    const data = [
      ...['config/*.yaml', 'migrations/*.sql', 'migrations/meta/_journal.json', 'console/dist/**/*.*'],
      'packaging/several-hosts/*',
    ].flatMap(inCheckout);
    const commands = ['cloudyard', 'directory-lock', 'installed', 'node-flags', 'server-bundle'];
    const documents = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'];
    const expected = [...built, ...data, ...commands.map((name) => `bin/${name}.mjs`), ...documents].sort();
    const { contents } = pack(folder);
    const isPart = (path: string) => /^dist\/parts\/[\w-]+\.js$/.test(path);
    expect(contents.filter((path) => !expected.includes(path) && !isPart(path))).toEqual([]);
    expect(expected.filter((path) => !contents.includes(path))).toEqual([]);
    expect(contents).toContain('console/dist/index.html');
  });

  it('contains the licences of the packages in its bundles', () => {
    const licencesOf = (path: string) => readFileSync(join(root, path, 'licences.txt'), 'utf8');
    for (const name of ['fastify', 'pg', 'commander']) {
      expect(licencesOf('dist')).toMatch(new RegExp(`^## ${name} \\S+ \\(\\S+\\)\\n\\n.*\\n`, 'm'));
    }
    expect(licencesOf('console/dist')).toMatch(/^## react - \S+ \(MIT\)$/m);
  });

  it('finds its parts for several hosts when it is installed', () => {
    const directory = join(folder, 'parts');
    mkdirSync(directory);
    install(pack(folder), directory);
    const library = join(directory, 'node_modules', 'cloudyard');
    expect(connectToNoCeph(process.execPath, library)).toMatch(reportOfBridge);
    const example = renderExample(join(library, 'packaging', 'several-hosts'));
    expect(example['cloudyard.env']).toContain('CLOUDYARD_HOST_ADDRESS=10.77.0.11');
    // Limits that an administrator changes in /etc/cloudyard, as on one host.
    expect(example['cloudyard.env']).toContain('CLOUDYARD_QUOTAS_FILE=/etc/cloudyard/quotas.yaml');
  });

  it('serves from an empty directory, with its data in the XDG data directory', async () => {
    const [directory, data] = [join(folder, 'empty'), join(folder, 'xdg-data')];
    mkdirSync(directory);
    install(pack(folder), directory);
    const drivers = ['FILE_SHARE', 'LOAD_BALANCER', 'VOLUME', 'REGISTRY'];
    const env = {
      ...{ PATH: pinnedPath, HOME: folder, XDG_DATA_HOME: data, CLOUDYARD_PORT: '0', CLOUDYARD_DISK_RESERVE: '0' },
      ...Object.fromEntries(drivers.map((kind) => [`CLOUDYARD_${kind}_DRIVER`, 'simulated'])),
    };
    const npx = (command: string) =>
      execFileSync('npx', ['--offline', 'cloudyard', command], { cwd: directory, env, encoding: 'utf8' });
    expect(npx('--help')).toMatch(/^usage: cloudyard COMMAND\n/);
    expect(npx('doctor')).toContain(`${join(data, 'cloudyard')} does not exist; the first start creates it`);
    expect(existsSync(data)).toBe(false);

    const child = spawn('npx', ['--offline', 'cloudyard', 'start'], {
      cwd: directory,
      // As a shell does: Ctrl-C reaches npx and its children.
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
      env,
    });
    let [output, hasEnded] = ['', false];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.once('close', () => (hasEnded = true));
    await until(() => output.includes('Cloudyard is ready.') || hasEnded, 120, 'ready');
    const [, url] = /^ {2}API +(http:\S+)$/m.exec(output)!;
    const [, token] = /^ {2}Token +(\S+\$\S+)$/m.exec(output)!;
    const { get, post } = httpClient(url!, token!);
    const network = (await get('/cloud/v1/networks/1/1')).body['results'][0].id as string;
    const share = { name: 'first', protocol: 'NFS', size: 1, network: { network_id: network } };
    const [task] = (await post('/cloud/v1/file_shares/1/1', share)).body['tasks'] as string[];
    expect((await get(`/cloud/v1/tasks/${task}?wait=60`)).body).toMatchObject({ state: 'FINISHED' });
    expect((await fetch(`${url}/console/`)).status).toBe(200);
    expect(existsSync(join(data, 'cloudyard', 'secret.keys'))).toBe(true);
    expect(output).toContain('to make it real: CLOUDYARD_VOLUME_DRIVER=auto npx cloudyard start');
    expect(npx('doctor')).toMatch(/^ {2}settings of PostgreSQL +ok /m);

    process.kill(-child.pid!, 'SIGINT');
    await until(() => hasEnded, 60, 'the end of the server');
    expect(processesOf(folder)).toEqual([]);
  });
});
