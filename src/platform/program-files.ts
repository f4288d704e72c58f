/** Where the files of this program are, and where its data is by default. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

/** The checkout or the installed package, with bin/, config/, migrations/ and console/. A bundle may contain this module. */
export const root = folderAbove(import.meta.dirname, 'migrations');

/** An installed package contains dist/ in place of src/. */
export const isCheckout = existsSync(join(root, 'src'));

/** Whether this is the program of the Debian package (packaging/deb). */
export const isDebianPackage = root === '/usr/lib/cloudyard';

/** A file of the sources that is not loaded as a module: `drivers/ceph/bridge.py`. Packages contain programs as JavaScript. */
export function programFile(source: string): string {
  return isCheckout ? join(root, 'src', source) : join(root, 'dist', source.replace(/\.ts$/, '.js'));
}

function folderAbove(start: string, contained: string): string {
  let folder = start;
  while (!existsSync(join(folder, contained))) {
    if (folder === dirname(folder)) throw new Error(`no folder above ${start} contains ${contained}`);
    folder = dirname(folder);
  }
  return folder;
}

/** Where relative paths in settings start, and the default data directory. */
export interface Places {
  base: string;
  dataDir: string;
}

/** Those of a checkout: everything is in its folder. */
export const checkoutPlaces = (checkout: string): Places => ({ base: checkout, dataDir: join(checkout, 'data') });

/** Those of an installed package follow the XDG Base Directory Specification, which ignores relative paths. */
export function installedPlaces(env: Record<string, string | undefined>): Places {
  const given = env['XDG_DATA_HOME'] ?? '';
  const data = isAbsolute(given) ? given : join(env['HOME'] || homedir(), '.local', 'share');
  return { base: process.cwd(), dataDir: join(data, 'cloudyard') };
}

/** Those of this program. */
export const placesOf = (env: Record<string, string | undefined>): Places =>
  isCheckout ? checkoutPlaces(root) : installedPlaces(env);
