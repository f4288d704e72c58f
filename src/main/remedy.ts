/**
 * Remedies in the form that fits how this process was started. Drivers write them for a checkout: commands joined by `&&`, of
 * which the last may be `npm start` with settings. A service of systemd is not started by that command, nor is a package.
 */
import type { DriverStatus } from '../platform/driver-status.ts';
import { isCheckout } from '../platform/program-files.ts';
import { readOrEmpty } from '../platform/read-or-empty.ts';
import { program } from './program.ts';

interface Origin {
  /** The command that starts Cloudyard. */
  start: string;
  /** The command of the operator. */
  program: string;
  /** The unit of systemd that runs this process; null: a person started it. */
  unit: string | null;
}

const origin: Origin = {
  start: isCheckout ? 'npm start' : `${program} start`,
  program,
  unit: unitOf(process.env, readOrEmpty('/proc/self/cgroup')),
};

/** systemd sets SYSTEMD_EXEC_PID for the process that it starts, which may be the launcher of this one. */
export function unitOf(env: Record<string, string | undefined>, cgroup: string): string | null {
  if (![process.pid, process.ppid].includes(Number(env['SYSTEMD_EXEC_PID']))) return null;
  return /\/([^/\n]+\.service)$/m.exec(cgroup)?.[1] ?? null;
}

const startCommand = /^(?<sudo>sudo )?(?<settings>(?:CLOUDYARD_\w+=\S+ )*)npm start$/;

export function remedyFor(remedy: string, { start, program, unit }: Origin = origin): string {
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
  if (unit === null) return [...commands, [...(mustBeRoot ? ['sudo'] : []), ...settings, start].join(' ')].join(' && ');
  // Not a command that sets them: the file of an `EnvironmentFile=` takes precedence over `Environment=`.
  const before = [
    ...(mustBeRoot ? [`User=root CapabilityBoundingSet=~ by systemctl edit ${unit}`] : []),
    ...(settings.size > 0 ? [`${[...settings].join(' ')} in its EnvironmentFile (systemctl cat ${unit})`] : []),
  ];
  const note = before.length > 0 ? `    # after you have set ${before.join(', ')}` : '';
  return [...commands, `systemctl restart ${unit}${note}`].join(' && ');
}

/** A status with its remedy in this form. */
export function withOwnRemedy<Status extends DriverStatus>(status: Status): Status {
  return status.remedy === undefined ? status : { ...status, remedy: remedyFor(status.remedy) };
}
