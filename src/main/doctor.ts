/** Prints which programs of the real drivers this host has, the command that installs the others, and what `start` would choose. */
import { egressGap } from '../drivers/egress-filter.ts';
import { hostDriverKinds } from '../drivers/kinds.ts';
import type { HostProgram } from '../drivers/kind.ts';
import { findProgram } from '../drivers/programs.ts';
import { timeZoneStatus } from '../platform/time-zone.ts';
import { detectDrivers } from './drivers.ts';
import type { Settings } from './settings.ts';
import { asRoot, driverTable } from './start-table.ts';

export async function doctor(settings: Settings): Promise<void> {
  const programs = Object.values(hostDriverKinds)
    .flatMap((kind): HostProgram[] => kind.programs)
    .map(({ find, ...program }) => ({ ...program, path: find ? find() : findProgram(program.name) }));
  const missing = [...new Set(programs.filter(({ path }) => !path).map((program) => program.package))];
  const lines = [
    'Programs of the real drivers:',
    ...programs.map((each) => `  ${each.name.padEnd(22)} ${each.path ?? `missing (package ${each.package})`}`),
    '',
    missing.length > 0
      ? `To install the missing programs: ${asRoot(`apt-get install ${missing.join(' ')}`)}`
      : 'Nothing is missing.',
    '',
    `Time zones of schedules: ${timeZoneStatus().detail}`,
    '',
    `Drivers on this host, as ${process.getuid?.() === 0 ? 'root' : 'this user'}:`,
    ...driverTable(await detectDrivers(settings, await egressGap())),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
