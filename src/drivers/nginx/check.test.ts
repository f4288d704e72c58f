/** Failed checks of a configuration: only what HAProxy or nginx says of the file is permanent. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';
import { until } from '../../../test/until.ts';
import { silentLogger } from '../../platform/log.ts';
import { readPidFile } from '../../platform/running-processes.ts';
import { findHaproxy } from '../haproxy/detect.ts';
import { extractFiles, type Spec } from '../haproxy/specs.ts';
import { makeFolders } from '../haproxy/layout.ts';
import { checkConfiguration } from '../haproxy/process.ts';
import { balancer, member, testHost, type TestHost } from '../haproxy/test-host.ts';
import { createNginx } from './process.ts';

const specOf = () =>
  extractFiles(balancer({ protocol: 'UDP', members: [member(53)] }, { protocol: 'UDP', port: 5353 })).spec;
const [spec, other] = [specOf(), specOf()];

/** Shell scripts in place of the program. */
const failures = {
  'is killed': 'kill -9 $$',
  'is ended': 'kill -15 $$',
  'cannot load a library': 'echo "error while loading shared libraries: libcrypt.so.1" >&2; exit 127',
  'fails before it reads the file': 'echo "setpriv: setresuid failed: Resource temporarily unavailable" >&2; exit 1',
};
const shortages = {
  'lacks space': 'echo "nginx: [emerg] open() \\"/x\\" failed (28: No space left on device)" >&2; exit 1',
  'lacks memory': 'echo "Lua init: not enough memory." >&2; exit 1',
  'lacks descriptors': 'echo "[ALERT] cannot open the file: Too many open files" >&2; exit 1',
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cloudyard-check-'));
  // As root, nginx runs under an account of its own.
  chmodSync(folder, 0o711);
});
afterEach(() => rmSync(folder, { recursive: true }));

function scriptOf(text: string): string {
  const file = join(folder, 'program');
  writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return file;
}

function checks(name: string, check: (program: string) => Promise<void>): void {
  it.each(Object.entries(failures))(`by ${name} that %s is repeated`, async (_what, script) => {
    await expect(check(scriptOf(script))).rejects.toMatchObject({ retryable: true, shortage: false });
  });
  it.each(Object.entries(shortages))(`by ${name} that %s is repeated as a shortage`, async (_what, script) => {
    await expect(check(scriptOf(script))).rejects.toMatchObject({ retryable: true, shortage: true });
  });
  it(`by ${name} that cannot be started is repeated`, async () => {
    await expect(check(join(folder, 'missing'))).rejects.toMatchObject({ retryable: true });
  });
}

describe('a check', () => {
  const file = () => {
    const path = join(folder, 'haproxy.cfg');
    writeFileSync(path, 'frontend one\n  bind 127.0.0.1:1\n  nonsense\n');
    return path;
  };
  checks('HAProxy', (program) => checkConfiguration(program, [file()]));

  it.skipIf(!requires('haproxy'))('by HAProxy that refuses the file is permanent, with the reason', async () => {
    await expect(checkConfiguration('haproxy', [file()])).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining("unknown keyword 'nonsense'"),
    });
  });
});

describe.skipIf(!requires('nginx', 'root'))(skipReason('nginx', 'root') ?? 'a check', () => {
  let host: TestHost;
  beforeEach(async () => {
    host = testHost();
    await makeFolders(host.layout);
  });
  afterEach(() => host.cleanUp());
  const check = (program: string, streamModule = 'built in') =>
    createNginx({ layout: host.layout, program, streamModule, log: silentLogger }).check(spec);
  checks('nginx', check);

  it('of an update that fails does not prevent a restart of nginx, and is repeated', async () => {
    const { nginx } = findHaproxy();
    const failing = join(folder, 'failing');
    const program = scriptOf(`[ "$1" = -t ] && [ -e ${failing} ] && exit 1; exec ${nginx!.program} "$@"`);
    const balancer = createNginx({ layout: host.layout, ...nginx!, program, log: silentLogger });
    const update = (...specs: Spec[]) => balancer.update(specs, () => true);
    const pid = () => readPidFile(join(host.layout.nginx, 'nginx.pid'));
    try {
      await update(spec);
      writeFileSync(failing, '');
      await expect(update(spec, other)).rejects.toThrow();
      const died = pid()!;
      process.kill(died, 'SIGKILL');
      // Without the file, nginx is being started.
      await until(() => ![died, null].includes(pid()) && !balancer.isDown(), 20, 'nginx');
      rmSync(failing);
      expect(await update(spec, other)).toBe(true);
    } finally {
      await balancer.stop();
    }
  });

  it('by nginx that refuses the file is permanent, with the reason', async () => {
    await expect(check('nginx', '/nonexistent.so')).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining('/nonexistent.so'),
    });
  });
});
