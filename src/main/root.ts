/** Where this program is installed, and where its data is by default. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout or the installed package, with bin/, config/, migrations/ and console/. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** An installed package contains dist/ in place of src/. */
export const isCheckout = existsSync(join(root, 'src'));

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
