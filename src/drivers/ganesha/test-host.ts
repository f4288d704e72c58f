/** A data directory and NFS clients for tests. `cleanUp` leaves no process, mount or loop device behind. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../../test/free-port.ts';
import { processIn } from '../../platform/running-processes.ts';
import { silentLogger } from '../../platform/log.ts';
import { createGaneshaDriver, type GaneshaDriver, type GaneshaDriverOptions } from './driver.ts';
import { findGanesha, type GaneshaFinding } from './detect.ts';

const execute = promisify(execFile);

type Place = Pick<GaneshaDriverOptions, 'dataDir' | 'port' | 'mountPort'> & { version3?: boolean };

export function testDriver(place: Place, finding: Partial<GaneshaFinding> = {}): GaneshaDriver {
  const host = '127.0.0.1';
  // libnfs 4.0 writes at most 3 KB at a time over NFSv4.
  const version3 = true;
  return createGaneshaDriver({
    version3,
    ...place,
    host,
    log: silentLogger,
    finding: { ...findGanesha(), ...finding },
  });
}

export async function testHost() {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudyard-ganesha-'));
  const [port, mountPort] = [await freePort(), await freePort()];
  const root = join(dataDir, 'file-shares');
  const pid = () => Number(readFileSync(join(root, 'ganesha/runtime/state/ganesha.pid'), 'utf8'));
  const url = (id: string, path = '', version: 3 | 4 = 3) =>
    `nfs://127.0.0.1/shares/${id}${path}?version=${version}&nfsport=${port}&mountport=${mountPort}`;
  const tool = async (name: string, ...args: string[]) => {
    const { stdout } = await execute(name, args, { timeout: 60_000, maxBuffer: 1 << 28 });
    return stdout;
  };
  return {
    dataDir,
    port,
    mountPort,
    driver: (finding?: Partial<GaneshaFinding>, options?: Partial<Place>) =>
      testDriver({ dataDir, port, mountPort, ...options }, finding),
    pid,
    /** Number of completed reloads of exports. */
    reloads: () => readFileSync(join(root, 'ganesha/ganesha.log'), 'utf8').split('Reread exports complete').length - 1,
    nfs: (name: 'nfs-ls' | 'nfs-cat', id: string, path?: string) => tool(name, url(id, path)),
    upload: (file: string, id: string, path: string) => tool('nfs-cp', file, url(id, path)),
    url,
    /** A path of the mounted share on this host. */
    inside: (id: string, path = '') => join(root, 'mounts', id, path),
    loopDevices: () =>
      execFileSync('losetup', ['-a'], { encoding: 'utf8' })
        .split('\n')
        .filter((line) => line.includes(root)),
    cleanUp: () => cleanUp(dataDir),
  };
}

export type TestHost = Awaited<ReturnType<typeof testHost>>;

function cleanUp(dataDir: string): void {
  const root = join(dataDir, 'file-shares');
  for (const name of ['runtime/state/ganesha.pid', 'ganesha.pid', 'runtime/rpcbind.pid']) {
    const found = processIn(join(root, 'ganesha', name));
    if (found && /ganesha\.nfsd|rpcbind/.test(found.commandLine)) process.kill(found.pid, 'SIGKILL');
  }
  const mounted = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  const ours = mounted.filter((each) => each.startsWith(`${root}/`));
  for (const path of ours.reverse()) execFileSync('umount', ['-l', path]);
  rmSync(dataDir, { recursive: true, force: true });
}
