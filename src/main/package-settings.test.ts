import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { requirePackageSettings } from './package-settings.ts';
import { UsageError } from './usage-error.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-package-settings-'));
const file = join(folder, 'cloudyard.env');
writeFileSync(file, '');
afterAll(() => rmSync(folder, { recursive: true }));

const absent = { dataDir: join(folder, 'absent') };
const check =
  (env: Record<string, string>, settings = absent, canRead = false, path: string | null = file) =>
  () =>
    requirePackageSettings(env, settings, path, () => canRead);

it('a command that cannot read the settings of the package creates no other installation', () => {
  expect(check({})).toThrow(UsageError);
  expect(check({})).toThrow(/cannot read .*cloudyard\.env, .* run the command as root/);
});

it('an installation that the user has chosen, and other packages, need no settings of the package', () => {
  expect(check({ CLOUDYARD_DATA_DIR: absent.dataDir })).not.toThrow();
  expect(check({ DATABASE_URL: 'postgres://other.example/cloudyard' })).not.toThrow();
  expect(check({}, { dataDir: folder })).not.toThrow();
  expect(check({}, absent, true)).not.toThrow();
  expect(check({}, absent, false, join(folder, 'no.env'))).not.toThrow();
  expect(check({}, absent, false, null)).not.toThrow();
});
