/** With a real rpcbind and Ganesha, in namespaces of their own: the rpcbind of the host serves others. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { requires, skipReason } from '../../../test/requires.ts';

const parts = ['root', 'nfs-ganesha', 'xfsprogs', 'rpcbind', 'util-linux', 'iproute2'] as const;

/** What the script prints last. */
async function runAlone(file: string, setUp: string) {
  const { stdout } = await promisify(execFile)('unshare', [
    ...['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'],
    ...['sh', '-c', `${setUp} && exec "$0" "$1"`, process.execPath, join(import.meta.dirname, file)],
  ]);
  return JSON.parse(stdout.trim().split('\n').at(-1)!);
}

const ownRun = 'ip link set lo up && mount -t tmpfs tmpfs /run && mkdir /run/rpcbind';

describe.skipIf(!requires(...parts))(skipReason(...parts) ?? 'a registration in rpcbind', () => {
  it('of a process that has ended does not keep Ganesha from starting, and one of a living process stays', async () => {
    const setUp = `${ownRun} && rpcbind -w -h 127.0.0.2`;
    const { registered, port, livingPort, status } = await runAlone('test-stale-registrations.ts', setUp);
    expect(status).toMatchObject({ healthy: true, real: true });
    expect(registered).toMatch(new RegExp(`100003 +3 +tcp +${port} `));
    expect(registered).toMatch(new RegExp(`100021 +1 +tcp +${livingPort} `));
    expect(registered).not.toContain(' 2999 ');
  }, 120_000);

  it('that a killed rpcbind has forgotten is made again', async () => {
    const { before, after } = await runAlone('test-lost-registrations.ts', ownRun);
    expect(before).toHaveLength(4);
    expect(after).toEqual(before);
  }, 120_000);
});
