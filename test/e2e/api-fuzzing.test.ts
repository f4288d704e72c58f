/**
 * Sends generated requests to the operations of openapi.json, in all phases of schemathesis: examples, boundary values,
 * random values, and sequences along the links of the document. No request may cause a 5xx or a response that the document
 * does not describe, and no invalid request may succeed. A valid one that is rejected without a reason in hooks.py is printed;
 * it fails the long run of `npm run test:fuzz` only, because the list of grammars is never complete. Excluded is streamEvents, whose
 * responses do not end.
 *
 * CLOUDYARD_TEST_SCHEMATHESIS selects the program (schemathesis==4.32.5 of PyPI); without it the test is skipped, and fails in
 * CI. TEST_FUZZ_SECONDS sets the length of the run, with a random seed; TEST_FUZZ_SEED repeats one.
 */
import { execFile, execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../../src/platform/program-files.ts';
import { bootstrapToken, openYard, type Yard } from '../processes.ts';
import { until } from '../until.ts';
import { newShare, defaultNetwork } from './storm.ts';

const program = process.env['CLOUDYARD_TEST_SCHEMATHESIS'] ?? '';
const length = process.env['TEST_FUZZ_SECONDS'];
const seconds = Number(length ?? 50);
const seed = Number(process.env['TEST_FUZZ_SEED'] ?? (length ? randomInt(2 ** 31) : 1));
const reason = skipReason();

function skipReason(): string | null {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return null;
  } catch {
    const missing = `skipped: ${program || 'schemathesis'} is not installed; set CLOUDYARD_TEST_SCHEMATHESIS`;
    if (process.env['CI']) throw new Error(`${missing}, and CI must not skip tests`);
    console.warn(missing);
    return missing;
  }
}

describe.skipIf(reason !== null)(reason ?? 'generated requests', () => {
  let yard: Yard;

  beforeAll(async () => {
    const simulated = { CLOUDYARD_FILE_SHARE_DRIVER: 'simulated' };
    yard = await openYard({ ...simulated, CLOUDYARD_DEV: '1', CLOUDYARD_RATE_LIMIT: '0' });
    await yard.start(['start']);
    await arrange(yard);
  });
  afterAll(() => yard?.cleanUp());

  it(`keep to openapi.json (seed ${seed})`, { timeout: (seconds + 240) * 1000 }, async () => {
    console.log(`schemathesis: ${seconds} s, seed ${seed}; repeat with TEST_FUZZ_SEED`);
    // Two processes, because the first two phases have a fixed length and the others fill the time.
    const reports = await Promise.all([fuzz(yard, 'examples,coverage'), fuzz(yard, 'fuzzing,stateful')]);
    for (const { output } of reports) for (const line of unexplained(output)) console.log(line);
    for (const { code, output } of reports) if (code !== 0) throw new Error(failuresIn(output));
    for (const { output } of reports) expect(output).toMatch(/Test cases:\n\s+\d+ generated/);

    expect((await yard.get('/readyz')).status).toBe(200);
    await until(async () => (await activeTasks(yard)) === 0, 60, 'the end of every task');
    expect((await yard.get('/cloudyard/v1/quota_audit')).body).toMatchObject({ count: 0, results: [] });
  });
});

/** Resources that the lists return, and the project and client of schemathesis.toml. */
async function arrange(yard: Yard): Promise<void> {
  const share = await yard.post('/cloud/v1/file_shares/1/1', newShare('share', await defaultNetwork(yard), {}));
  const volume = await yard.post('/cloud/v1/volumes/1/1', { source: 'new-volume', name: 'volume', size: 1 });
  await yard.ended(share);
  await yard.ended(volume);
  await yard.post('/cloud/v1/projects', { name: 'second' });
  await yard.post('/cloudyard/v1/clients', { name: 'second' });
}

/** The rejections that hooks.py does not explain. */
function unexplained(output: string): Set<string> {
  return new Set(output.match(/^not explained: .*$/gm));
}

/** The rejections that hooks.py does not explain, and the failures of the report. */
function failuresIn(output: string): string {
  return [...unexplained(output), output.slice(Math.max(0, output.indexOf('= FAILURES =')))].join('\n');
}

async function activeTasks(yard: Yard): Promise<number> {
  return (await yard.get('/cloud/v1/tasks?state=NEW&state=RUNNING&limit=1')).body.count;
}

async function fuzz(yard: Yard, phases: string): Promise<{ code: number; output: string }> {
  const folder = join(root, 'test', 'api-fuzzing');
  copyFileSync(join(folder, 'schemathesis.toml'), join(yard.folder, 'schemathesis.toml'));
  const args = [
    ...['run', join(root, 'openapi.json'), '--url', yard.url],
    ...['--header', `Authorization: apikey ${bootstrapToken}`],
    ...['--phases', phases, '--seed', String(seed), '--max-time', String(seconds)],
    ...[
      '--exclude-operation-id',
      'streamEvents',
      '--no-color',
      '--continue-on-failure',
      '--generation-database',
      'none',
    ],
    ...['--suppress-health-check', 'all', '--request-timeout', '30'],
  ];
  const env = {
    ...(process.env as Record<string, string>),
    SCHEMATHESIS_HOOKS: join(folder, 'hooks.py'),
    PYTHONDONTWRITEBYTECODE: '1',
    TEST_FUZZ_TOKEN_ID: String((await yard.get('/cloudyard/v1/tokens')).body.results[0].id),
  };
  return new Promise((resolve) => {
    // Ends before the time limit of the test, which does not stop processes.
    const timeout = (seconds + 200) * 1000;
    execFile(
      program,
      args,
      { cwd: yard.folder, env, maxBuffer: 2 ** 30, timeout, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => {
        const code = error ? Number((error as { code?: unknown }).code ?? 1) : 0;
        resolve({ code, output: `${stdout}${stderr}` });
      },
    );
  });
}
