/** Files of a package that are no modules, and that a region of several hosts needs: tried where the package has them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const storage = 'storage: { driver: ceph, conf: /nonexistent/ceph.conf, user: x, pool: volumes, filesystem: shares }';

/** What `cloudyard doctor` reports of a Ceph cluster that does not exist. `library` contains `dist`. */
export function connectToNoCeph(node: string, library: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'cloudyard-ceph-'));
  try {
    cpSync(join(library, 'config'), folder, { recursive: true });
    const regions = join(folder, 'regions.yaml');
    writeFileSync(regions, readFileSync(regions, 'utf8').replace(/^ {4}country: .*/m, `$&\n    ${storage}`));
    const env = {
      PATH: process.env['PATH'],
      CLOUDYARD_DATA_DIR: join(folder, 'data'),
      CLOUDYARD_REGIONS_FILE: regions,
    };
    return spawnSync(node, [join(library, 'dist', 'main', 'cloudyard.js'), 'doctor'], { encoding: 'utf8', env }).stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** That the library found bridge.py, with and without the Python modules of Ceph. */
export const reportOfBridge = /storage of region 1 +FAILED.*(error calling conf_read_file|No module named 'rados')/;

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
