/** With a real rpcbind and Ganesha, in namespaces of their own: the rpcbind of the host serves others. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';

const parts = ['root', 'nfs-ganesha', 'xfsprogs', 'rpcbind', 'util-linux', 'iproute2'] as const;

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a registration in rpcbind', () => {
  it('of a process that has ended does not keep Ganesha from starting, and one of a living process stays', async () => {
    const script = join(import.meta.dirname, 'test-stale-registrations.ts');
    const setUp = 'ip link set lo up && mount -t tmpfs tmpfs /run && mkdir /run/rpcbind && rpcbind -w -h 127.0.0.2';
    const { stdout } = await promisify(execFile)('unshare', [
      ...['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'],
      ...['sh', '-c', `${setUp} && exec "$0" "$1"`, process.execPath, script],
    ]);
    const { registered, port, livingPort, status } = JSON.parse(stdout.trim().split('\n').at(-1)!);
    expect(status).toMatchObject({ healthy: true, real: true });
    expect(registered).toMatch(new RegExp(`100003 +3 +tcp +${port} `));
    expect(registered).toMatch(new RegExp(`100021 +1 +tcp +${livingPort} `));
    expect(registered).not.toContain(' 2999 ');
  }, 120_000);
});
