/**
 * Makes the fixture of a release for upgrade.test.ts, once, when the release is made:
 *
 *   git worktree add /tmp/release 38c1cb4^ && (cd /tmp/release && npm ci)
 *   node bin/run.mjs test/upgrades/make-fixture.ts /tmp/release
 *
 * It runs the release with simulated drivers on a database of its own, creates one example of each resource, records the
 * responses of all GET operations, and writes the rows, the triggers, the pending jobs and the statements that the release
 * executed. The last changes are made without a worker, so that their jobs are pending.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../free-port.ts';
import { startEmbeddedPostgres } from '../../src/platform/embedded-postgres.ts';
import { silentLogger } from '../../src/platform/log.ts';
import { createPending, createResources, type Request } from './examples.ts';
import { openDump } from './dump.ts';
import { fixtureFolder, fixtureKey, fixtureToken } from './release.ts';

const checkout = process.argv[2];
if (checkout === undefined) throw new Error('usage: make-fixture.ts CHECKOUT_OF_THE_RELEASE');
const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string };
const target = fixtureFolder(version);

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-fixture-'));
// As root, PostgreSQL runs as another account, which must be able to enter the folder.
chmodSync(folder, 0o755);
const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'database'), log: silentLogger });
const port = await freePort();
writeFileSync(join(folder, 'secret.keys'), `${fixtureKey.id} ${fixtureKey.key.toString('base64')}\n`, { mode: 0o600 });

const environment = {
  PATH: process.env['PATH'],
  DATABASE_URL: postgres.url,
  CLOUDYARD_DATA_DIR: folder,
  CLOUDYARD_KEY_FILE: join(folder, 'secret.keys'),
  CLOUDYARD_PORT: String(port),
  CLOUDYARD_BOOTSTRAP_TOKEN: fixtureToken,
  CLOUDYARD_FILE_SHARE_DRIVER: 'simulated',
  CLOUDYARD_LOAD_BALANCER_DRIVER: 'simulated',
  CLOUDYARD_REGISTRY_DRIVER: 'simulated',
  CLOUDYARD_VOLUME_DRIVER: 'simulated',
};

const request: Request = async (method, path, body) => {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: {
      authorization: `apikey ${fixtureToken}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === '' ? null : JSON.parse(text);
};

/** Runs a command of the release while `work` runs. SIGKILL leaves the jobs as they are. */
async function withServer(command: string, settings: Record<string, string>, work: () => Promise<void>): Promise<void> {
  const child = spawn(process.execPath, [join(checkout!, 'src/main/cloudyard.ts'), command], {
    env: { ...environment, ...settings },
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  try {
    while (
      !(await fetch(`http://127.0.0.1:${port}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ))
    ) {
      if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}`);
      await sleep(50);
    }
    await work();
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
}

const lines = (values: unknown[]) => values.map((value) => `${JSON.stringify(value)}\n`).join('');

try {
  const dump = await openDump(postgres.connection, join(folder, 'database', 'postgres.log'));
  let parameters: Record<string, string | number> = {};
  await withServer('start', { CLOUDYARD_NOTIFICATION_WINDOW_SECONDS: '0' }, async () => {
    parameters = await createResources(request);
  });
  const answers: { path: string; body: unknown }[] = [];
  await withServer('serve', { CLOUDYARD_NOTIFICATION_WINDOW_SECONDS: '10' }, async () => {
    await createPending(request, parameters);
    for (const path of pathsOf(parameters)) {
      const body = await request('GET', path).catch(() => undefined);
      if (body !== undefined) answers.push({ path, body });
    }
  });
  mkdirSync(target, { recursive: true });
  const { tables, functions, triggers, jobs, statements, at } = await dump.read();
  writeFileSync(join(target, 'release.json'), `${JSON.stringify({ version, at, parameters }, null, 2)}\n`);
  writeFileSync(join(target, 'tables.jsonl'), lines(tables));
  writeFileSync(join(target, 'jobs.jsonl'), lines(jobs));
  writeFileSync(join(target, 'triggers.jsonl'), lines([...functions, ...triggers]));
  writeFileSync(join(target, 'statements.jsonl'), lines(statements));
  writeFileSync(join(target, 'answers.jsonl'), lines(answers));
  process.stdout.write(
    `${target}: ${answers.length} responses, ${jobs.length} jobs, ${statements.length} statements\n`,
  );
} finally {
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** All GET operations of the release, but those that depend on the time or on the process. */
function pathsOf(values: Record<string, string | number>): string[] {
  const unrelated = /healthz|readyz|metrics|docs|openapi|\/dev\/|authorize|registry_token|verify|audit|^\/$/;
  const { paths } = JSON.parse(readFileSync(join(checkout!, 'openapi.json'), 'utf8')) as {
    paths: Record<string, object>;
  };
  return Object.entries(paths)
    .filter(([path, operations]) => 'get' in operations && !unrelated.test(path))
    .map(([path]) => path.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name] ?? 1)))
    .map((path) => (path === '/cloud/v1/tasks' ? `${path}?limit=100` : path));
}
