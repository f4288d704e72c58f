/** NFS clients as separate processes: the tools of libnfs, which need no mount. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Yard } from './processes.ts';

const execute = promisify(execFile);

/** NFSv3, because libnfs 4.0 writes at most 3 KB at a time over NFSv4. */
export function nfsUrl(yard: Yard, connectionPoint: string, path = '', version: 3 | 4 = 3): string {
  const at = connectionPoint.indexOf(':/');
  const [host, share] = [connectionPoint.slice(0, at), connectionPoint.slice(at + 1)];
  const ports = `nfsport=${yard.nfsPort}${version === 3 ? `&mountport=${yard.mountPort}` : ''}`;
  return `nfs://${host}${share}${path}?version=${version}&${ports}`;
}

/** @throws with the client's stderr */
export async function nfs(tool: 'nfs-ls' | 'nfs-cat' | 'nfs-cp', ...args: string[]): Promise<string> {
  const { stdout } = await execute(tool, args, { timeout: 60_000, maxBuffer: 1 << 28 });
  return stdout;
}
