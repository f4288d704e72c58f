/**
 * Prints which programs of the real drivers, and of an agent if a region has several hosts, are on this host, the command that
 * installs the others, what `start` would choose, and the checks of the installation.
 */
import { egressGap } from '../drivers/egress-filter.ts';
import { timeZoneStatus } from '../platform/time-zone.ts';
import { detectDrivers } from './drivers.ts';
import { findPrograms } from './host-programs.ts';
import { detectHostedDrivers } from './hosted-drivers.ts';
import { checkInstallation } from './installation-checks.ts';
import type { Finding } from './finding.ts';
import type { Settings } from './settings.ts';
import { checkStorage, regionsOf, withStorage } from './storage.ts';
import { asRoot, driverTable } from './start-table.ts';

function linesOf({ name, ok, detail, remedy }: Finding): string[] {
  const line = `  ${name.padEnd(26)} ${ok ? 'ok' : 'FAILED'}    ${detail}`;
  return ok || remedy === undefined ? [line] : [line, `${' '.repeat(29)}fix: ${remedy}`];
}

/** @throws Error if a check of the installation failed */
export async function doctor(given: Settings): Promise<void> {
  const regions = regionsOf(given);
  const settings = withStorage(given, regions.find(({ storage }) => storage)?.storage ?? null);
  const programs = findPrograms(regions, settings);
  const missing = [...new Set(programs.filter(({ path }) => !path).map((program) => program.package))];
  const drivers = {
    ...(await detectDrivers(settings, await egressGap())),
    ...detectHostedDrivers(regions, settings),
  };
  const lines = [
    'Programs of the real drivers:',
    ...programs.map((each) => `  ${each.name.padEnd(22)} ${each.path ?? `missing (package ${each.package})`}`),
    '',
    missing.length > 0
      ? `To install the missing programs: ${asRoot(`apt-get install ${missing.join(' ')}`)}    # then restart Cloudyard`
      : 'Nothing is missing.',
    '',
    `Time zones of schedules: ${timeZoneStatus().detail}`,
    '',
    `Drivers on this host, as ${process.getuid?.() === 0 ? 'root' : 'this user'}:`,
    ...driverTable(drivers),
  ];
  const findings = [...(await checkInstallation(settings)), ...(await checkStorage(regions, settings))];
  lines.push('', 'This installation:', ...findings.flatMap(linesOf));
  process.stdout.write(`${lines.join('\n')}\n`);
  const failed = findings.filter(({ ok }) => !ok);
  if (failed.length > 0) throw new Error(`failed: ${failed.map(({ name }) => name).join(', ')}`);
}
