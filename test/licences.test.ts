/** Licences of all packages that package-lock.json installs, from the lock file: no network is needed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../src/platform/program-files.ts';

/** Permissive licences, which Apache-2.0 programs may use in every way. */
const permissive = new Set([
  ...['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT', 'MIT-0', 'Python-2.0', 'Unlicense'],
  ...['MIT OR Apache-2.0', '(MIT OR CC0-1.0)', 'BlueOak-1.0.0', 'CC0-1.0'],
]);
/** Copyleft of single files: for tools that Cloudyard does not distribute. */
const forDevelopment = new Set(['MPL-2.0']);

interface Package {
  license?: string;
  dev?: boolean;
  devOptional?: boolean;
}

it('every installed package has a licence that this project may use', () => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Package>;
  };
  const installed = Object.entries(packages).filter(([path]) => path !== '');
  expect(installed.length).toBeGreaterThan(100);
  const refused = installed
    .filter(([, { license = 'none', dev, devOptional }]) => {
      return !permissive.has(license) && !((dev || devOptional) && forDevelopment.has(license));
    })
    .map(([path, { license }]) => `${path}: ${license}`);
  expect(refused).toEqual([]);
});
