/** What backups and restores read from the settings: keys, configuration files, and the data of this host. */
import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { BackupError, type ConfigurationCopy, type Manifest } from '../backup/format.ts';
import type { KeyOpener, KeyProtection } from '../backup/key-envelope.ts';
import { migrationsIn } from '../backup/migrations.ts';
import type { BackupOptions } from '../backup/backup.ts';
import type { ConnectionOptions } from '../platform/db.ts';
import { shellWord } from '../platform/shell-word.ts';
import { readYamlFile } from '../platform/yaml-file.ts';
import { RegionsFile } from '../resources/regions/schema.ts';
import { configurationFiles } from './configuration.ts';
import { migrationsFolder } from './migrate.ts';
import type { Settings } from './settings.ts';
import { version } from './version.ts';

/** Reads the journal of the migrations of this version. */
export const migrations = () => migrationsIn(migrationsFolder);

/** Without `copyFiles`: a backup of the database, the keys and the configuration. */
export function backupOptions(
  settings: Settings,
  connection: ConnectionOptions,
  reason: Manifest['reason'],
  copyFiles: BackupOptions['copyFiles'] = null,
): BackupOptions {
  return {
    ...{ connection, version, reason, copyFiles, keyFile: settings.keyFile },
    migrations: migrations(),
    protection: keyProtection(settings),
    configuration: configurationCopies(settings),
  };
}

function keyProtection({ backup }: Settings): KeyProtection | null {
  if (backup.ageRecipient !== undefined) return { ageRecipient: backup.ageRecipient };
  const passphrase = readPassphrase(backup.passphraseFile);
  return passphrase === undefined ? null : { passphrase };
}

/** How the keys of a backup are decrypted. @throws BackupError if the passphrase cannot be read */
export function keyOpener({ backup }: Settings, ageIdentityFile: string | undefined): KeyOpener {
  return { passphrase: readPassphrase(backup.passphraseFile), ageIdentityFile };
}

/** The first line of the file. @throws BackupError if it cannot be read or is empty */
function readPassphrase(file: string | undefined): string | undefined {
  if (file === undefined) return undefined;
  try {
    const [line = ''] = readFileSync(file, 'utf8').split(/\r?\n/);
    if (line !== '') return line;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const fix = code === 'EACCES' ? `; as root, run: chown ${process.getuid?.()} ${shellWord(file)}` : '';
    throw new BackupError(`CLOUDYARD_BACKUP_PASSPHRASE_FILE ${file} cannot be read (${code})${fix}`, { cause: error });
  }
  throw new BackupError(`CLOUDYARD_BACKUP_PASSPHRASE_FILE ${file} is empty`);
}

/** The regions and quotas files and the price books. */
function configurationCopies(settings: Settings): ConfigurationCopy[] {
  const { regions, quotas } = configurationFiles(settings);
  const books = readYamlFile(regions, RegionsFile).regions.flatMap(({ price_book: book }) => book ?? []);
  const files = [regions, quotas, ...new Set(books.map((book) => resolve(dirname(regions), book)))];
  return files.flatMap((file) => {
    try {
      return [{ name: basename(file), text: readFileSync(file, 'utf8') }];
    } catch {
      // A server starts without a price book, too.
      return [];
    }
  });
}
