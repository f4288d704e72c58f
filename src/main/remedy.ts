/**
 * Remedies in the form that fits how this process was started. Drivers write them for a checkout: commands joined by `&&`, of
 * which the last may be `npm start` with settings. A service of systemd is not started by that command, nor is a package.
 */
import { existsSync } from 'node:fs';
import type { DriverStatus } from '../platform/driver-status.ts';
import { isCheckout, isDebianPackage } from '../platform/program-files.ts';
import { readOrEmpty } from '../platform/read-or-empty.ts';
import { serviceIn } from '../platform/service-manager.ts';
import { program } from './program.ts';

interface Origin {
  /** The command that starts Cloudyard. */
  start: string;
  /** The command of the operator. */
  program: string;
  /** The services of systemd that a remedy starts again; null: a person starts Cloudyard. */
  service: Service | null;
}

interface Service {
  /** As arguments of `systemctl`. */
  units: string;
  /** Where its settings are, after `in`. */
  settings: string;
  /** The unit that may lack rights; null: it has those of root. */
  unit: string | null;
}

/** The unit of systemd that runs this process. */
const ownService = (unit: string | null): Service | null =>
  unit === null ? null : { units: unit, settings: `its EnvironmentFile (systemctl cat ${unit})`, unit };

/** For a command of root, such as `doctor`, that the Debian package contains (packaging/deb). */
const packageServices: Service | null =
  isDebianPackage && existsSync('/run/systemd/system') && process.getuid?.() === 0
    ? { units: "cloudyard-serve 'cloudyard-worker@*'", settings: '/etc/cloudyard/cloudyard.env', unit: null }
    : null;

const origin: Origin = {
  start: isCheckout ? 'npm start' : `${program} start`,
  program,
  service: ownService(unitOf(process.env, readOrEmpty('/proc/self/cgroup'))) ?? packageServices,
};

/** systemd sets SYSTEMD_EXEC_PID for the process that it starts, which may be the launcher of this one. */
export function unitOf(env: Record<string, string | undefined>, cgroup: string): string | null {
  if (![process.pid, process.ppid].includes(Number(env['SYSTEMD_EXEC_PID']))) return null;
  return serviceIn(cgroup);
}

const startCommand = /^(?<sudo>sudo )?(?<settings>(?:CLOUDYARD_\w+=\S+ )*)npm start$/;

export function remedyFor(remedy: string, { start, program, service }: Origin = origin): string {
  const commands: string[] = [];
  const settings = new Set<string>();
  let [starts, mustBeRoot] = [false, false];
  for (const command of remedy.split(' && ')) {
    const found = startCommand.exec(command)?.groups;
    if (!found) commands.push(command.replace(/^npm run cloudyard --/, program));
    else {
      starts = true;
      mustBeRoot ||= found['sudo'] !== undefined;
      for (const setting of found['settings']!.split(' ').filter(Boolean)) settings.add(setting);
    }
  }
  if (!starts) return commands.join(' && ');
  if (service === null)
    return [...commands, [...(mustBeRoot ? ['sudo'] : []), ...settings, start].join(' ')].join(' && ');
  // Not a command that sets them: the file of an `EnvironmentFile=` takes precedence over `Environment=`.
  const before = [
    ...(mustBeRoot && service.unit !== null
      ? [`User=root CapabilityBoundingSet=~ by systemctl edit ${service.unit}`]
      : []),
    ...(settings.size > 0 ? [`${[...settings].join(' ')} in ${service.settings}`] : []),
  ];
  const note = before.length > 0 ? `    # after you have set ${before.join(', ')}` : '';
  return [...commands, `systemctl restart ${service.units}${note}`].join(' && ');
}

/** A status with its remedy in this form. */
export function withOwnRemedy<Status extends DriverStatus>(status: Status): Status {
  return status.remedy === undefined ? status : { ...status, remedy: remedyFor(status.remedy) };
}
