/** With real programs, in namespaces of their own: the rpcbind of the host serves others. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';

const parts = ['root', 'rpcbind', 'util-linux', 'iproute2'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'rpcbind', () => {
  it('is started when another one ends or starts at the same time, so that NFSv3 is served', async () => {
    const script = join(import.meta.dirname, 'test-rpcbind-race.ts');
    const setUp = 'ip link set lo up && mount -t tmpfs tmpfs /run && mkdir /run/rpcbind';
    const { stdout } = await promisify(execFile)('unshare', [
      ...['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'],
      ...['sh', '-c', `${setUp} && "$0" "$1"`, process.execPath, script],
    ]);
    const seen = { afterAnother: true, atOnce: [true, true], holder: 'rpcbind', left: null };
    expect(JSON.parse(stdout)).toEqual(seen);
  }, 120_000);
});
