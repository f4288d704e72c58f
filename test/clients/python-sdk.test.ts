/**
 * Runs python_sdk.py, which uses the official Python SDK (`gcore`), and the example of the README against a server.
 * CLOUDYARD_TEST_PYTHON selects a Python with the package; .ci/run creates one.
 */
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { createTestHost } from '../drivers.ts';
import { useCloudyard } from '../harness.ts';

const python = process.env['CLOUDYARD_TEST_PYTHON'] ?? 'python3';
const script = fileURLToPath(new URL('python_sdk.py', import.meta.url));
const reason = skipReason();
if (reason && process.env['CI']) throw new Error(`${reason}, and CI must not skip tests`);

type Failed = { stderr: string };

function skipReason(): string | null {
  try {
    execFileSync(python, ['-c', 'import gcore'], { stdio: 'ignore' });
    return null;
  } catch {
    return `skipped: ${python} has no package gcore; set CLOUDYARD_TEST_PYTHON to a Python with it`;
  }
}

describe.skipIf(reason !== null)(reason ?? 'the official Python SDK', () => {
  const host = createTestHost();
  const cloud = useCloudyard({
    driver: host,
    configuration: (shipped) => ({
      ...shipped,
      regions: shipped.regions.map((region) => ({ ...region, file_share_types: ['standard', 'vast'] as const })),
    }),
  });
  let environment: Record<string, string>;

  beforeAll(async () => {
    const { projectId, clientId, token: admin } = await cloud.newClient();
    const reader = await cloud.newToken(clientId, 'reader');
    const { token: other } = await cloud.newClient();
    await cloud.app.listen({ host: '127.0.0.1', port: 0 });
    steer(host, cloud.app.server);
    const { port } = cloud.app.server.address() as AddressInfo;
    const setup = { url: `http://127.0.0.1:${port}`, project_id: projectId, tokens: { admin, reader, other } };
    environment = { ...(process.env as Record<string, string>), CLOUDYARD_SDK_TEST: JSON.stringify(setup) };
  });

  it('runs the example of the README', async () => {
    const [, example = ''] = /```python\n([^]*?)```/.exec(readFileSync('README.md', 'utf8')) ?? [];
    const { url } = JSON.parse(environment['CLOUDYARD_SDK_TEST']!) as { url: string };
    const env = { ...environment, CLOUDYARD_URL: url, CLOUDYARD_TOKEN: cloud.admin };
    const { stdout } = await promisify(execFile)(python, ['-c', example], { env, timeout: 60_000 });
    expect(stdout).toMatch(/^available \S+:\S+\n$/);
  }, 90_000);

  it('supports every operation of the server and gets every field of its models', async () => {
    const options = { env: environment, timeout: 150_000 };
    const { stderr } = await promisify(execFile)(python, [script], options).catch((failed: Failed) => failed);
    // The output of unittest is the report.
    if (!/^OK$/m.test(stderr)) throw new Error(stderr);
    expect(stderr).toMatch(/^Ran [12]\d tests/m);
  }, 180_000);
});

/** Lets the script block and release the host with requests of these paths. */
function steer(host: ReturnType<typeof createTestHost>, server: Server): void {
  let release = () => {};
  server.on('request', ({ url }) => {
    if (url === '/test/hold') release = host.hold();
    if (url === '/test/release') release();
  });
}
