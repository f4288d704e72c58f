/** All settings: those of Cloudyard itself (platform/settings.ts) and those that the kinds of drivers declare. */
import { isIP } from 'node:net';
import type { NextInstant } from '../backup/schedule.ts';
import { clientVariables } from '../client/contexts.ts';
import { deliveryDriverKinds, type DriverSettings, hostDriverKinds } from '../drivers/kinds.ts';
import { settingMeanings } from '../platform/setting-meanings.ts';
import { createSettingReader, type SettingDescription, type SettingReader } from '../platform/setting-reader.ts';
import { type CoreSettings, readCoreSettings } from '../platform/settings.ts';
import { parseBackupSchedule } from './backup-schedule.ts';
import type { Places } from '../platform/program-files.ts';

export interface Settings extends CoreSettings {
  drivers: DriverSettings;
  /** CLOUDYARD_BACKUP_SCHEDULE; null: no schedule. */
  nextBackup: NextInstant | null;
}

const kinds = { ...hostDriverKinds, ...deliveryDriverKinds };

/** The settings that the kinds of drivers declare. */
export const driverSettings: SettingDescription[] = Object.values(kinds).flatMap(({ settings }) => settings);

/** The names of all settings. */
export const settingNames: string[] = [...Object.keys(settingMeanings), ...driverSettings.map(({ name }) => name)];

/** @throws SettingsError that names every invalid setting */
export function readSettings(env: Record<string, string | undefined>, places: Places, terminal: boolean): Settings {
  const reader = createSettingReader(env, places.base);
  const core = readCoreSettings(reader, places, terminal);
  const defaults = { host: isWildcard(core.host) ? '127.0.0.1' : core.host };
  const drivers = Object.fromEntries(
    Object.entries(kinds).map(([kind, { readSettings: read }]) => [kind, read(reader, defaults)]),
  ) as DriverSettings;
  const nextBackup = nextBackupIn(reader);
  reader.check();
  return { ...core, drivers, nextBackup };
}

function nextBackupIn({ text, reject }: SettingReader): NextInstant | null {
  const schedule = text('CLOUDYARD_BACKUP_SCHEDULE');
  const parsed = schedule === undefined ? { next: null } : parseBackupSchedule(schedule, new Date());
  if ('next' in parsed) return parsed.next;
  reject(`CLOUDYARD_BACKUP_SCHEDULE ${parsed.error}`);
  return null;
}

/** Variables that look like settings but are not: probably misspelled, so every command warns about them. */
export function unknownSettings(env: Record<string, string | undefined>): string[] {
  const known = new Set([...settingNames, ...clientVariables]);
  // Those of the tests of a checkout, which contributors export.
  const isOfTests = (name: string) => name.startsWith('CLOUDYARD_TEST_');
  return Object.keys(env).filter((name) => name.startsWith('CLOUDYARD_') && !known.has(name) && !isOfTests(name));
}

function isWildcard(host: string): boolean {
  return isIP(host) !== 0 && /^[0:.]+$/.test(host);
}
