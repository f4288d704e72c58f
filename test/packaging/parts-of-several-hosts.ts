/** Files of a package that are no modules, and that a region of several hosts needs: tried where the package has them. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const connect = `
  const { createCephBridge } = await import(process.argv[1]);
  const log = { warn() {}, debug() {} };
  const bridge = createCephBridge({ conf: '/nonexistent/ceph.conf', user: 'x', log });
  await bridge.start().catch(({ message }) => console.log(message));
  await bridge.stop();`;

/** What the connection to a Ceph cluster reports that does not exist. `library` contains `dist`. */
export function connectToNoCeph(node: string, library: string): string {
  const bridge = join(library, 'dist', 'drivers', 'ceph', 'bridge.js');
  return execFileSync(node, ['--input-type=module', '--eval', connect, bridge], { encoding: 'utf8' });
}

/** That the library found bridge.py, with and without the Python modules of Ceph. */
export const reportOfBridge = /error calling conf_read_file|No module named 'rados'/;

/** Renders the example for its first host. Returns the texts by file. */
export function renderExample(folder: string): Record<string, string> {
  const output = mkdtempSync(join(tmpdir(), 'cloudyard-several-hosts-'));
  try {
    execFileSync(join(folder, 'render'), [join(folder, 'hosts.env'), 'h1', output]);
    return Object.fromEntries(readdirSync(output).map((name) => [name, readFileSync(join(output, name), 'utf8')]));
  } finally {
    rmSync(output, { recursive: true });
  }
}
