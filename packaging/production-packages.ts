/** The npm packages that an installed Cloudyard needs, from package-lock.json and node_modules: no network is needed. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface ProductionPackage {
  /** `node_modules/pg`; nested packages have their own entries. */
  path: string;
  version: string;
  license: string;
}

interface LockedPackage {
  version: string;
  license?: string;
  dev?: boolean;
}

/** Sorted by path. Packages for other platforms are not installed and not listed, nor are types for the compiler. */
export function productionPackages(checkout: string): ProductionPackage[] {
  const { packages } = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>;
  };
  return Object.entries(packages)
    .filter(([path, { dev }]) => path !== '' && !dev && !isTypes(path) && existsSync(join(checkout, path)))
    .map(([path, { version, license = 'unknown' }]) => ({ path, version, license }))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

function isTypes(path: string): boolean {
  return path.startsWith('node_modules/@types/') || path === 'node_modules/undici-types';
}
