/** The settings of the Debian package, which its command applies if it may read them (packaging/deb/files/cloudyard.sh). */
import { accessSync, constants, existsSync } from 'node:fs';
import { isDebianPackage } from '../platform/program-files.ts';
import type { Settings } from './settings.ts';
import { UsageError } from './usage-error.ts';

const packageSettings = '/etc/cloudyard/cloudyard.env';

/**
 * A command that cannot read them would create another installation in the home of its user, and print a token that the services
 * refuse. Settings that name a database or a data directory, and an existing data directory, are a choice of the user.
 * @throws UsageError for such a command
 */
export function requirePackageSettings(
  env: Record<string, string | undefined>,
  { dataDir }: Pick<Settings, 'dataDir'>,
  file: string | null = isDebianPackage ? packageSettings : null,
  canRead = isReadable,
): void {
  if (file === null || !existsSync(file) || canRead(file)) return;
  if (env['CLOUDYARD_DATA_DIR'] || env['DATABASE_URL'] || existsSync(dataDir)) return;
  throw new UsageError(
    `this user cannot read ${file}, the settings of the services; run the command as root, ` +
      'or set CLOUDYARD_DATA_DIR for an installation of your own',
  );
}

function isReadable(file: string): boolean {
  try {
    accessSync(file, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
