/** Prints what an operator needs after a start: the URL, the token, and which drivers are real. */
import type { DriverStatus } from '../platform/driver-status.ts';
import { portOf } from '../platform/own-ports.ts';
import { program } from './program.ts';
import { remedyFor } from './remedy.ts';
import type { Settings } from './settings.ts';
import type { Work } from './work.ts';

const developmentMode = 'Development mode (CLOUDYARD_DEV=1): clients may move the clock and inject faults';

/**
 * `url`: null if the process serves nothing. `token`: null if it must not or cannot be printed. `work`: null without
 * regions.
 */
export function printStart(facts: {
  settings: Settings;
  serves: boolean;
  url: string | null;
  token: string | null;
  database: string;
  work: Work | null;
  deliveries: Record<string, DriverStatus>;
  /** Regions that allow members of load balancers on loopback. */
  loopbackRegions: number[];
  isService: boolean;
}): void {
  const { serves, url, work, deliveries, loopbackRegions } = facts;
  const lines = ['', 'Cloudyard is ready.', ''];
  if (serves) {
    const { publicUrl = url } = facts.settings;
    lines.push(`  API        ${url}`, ...portNote(facts.settings, url));
    if (publicUrl !== url) lines.push(`  Public     ${publicUrl}`);
    // At the public URL: there the certificate is valid, and single sign-on returns to it.
    lines.push(`  Reference  ${publicUrl}/docs`);
    if (facts.settings.console) lines.push(`  Console    ${publicUrl}/console`);
    const create = `${program} token create --role admin`;
    const another = facts.isService
      ? `to create one: ${create}`
      : `printed at the first start; to create another: ${create}`;
    lines.push(`  Token      ${facts.token ?? another}`);
  } else if (url) lines.push(`  Metrics    ${url}/metrics`);
  lines.push(`  Database   ${facts.database}`, `  Data       ${facts.settings.dataDir}`, '');
  if (facts.settings.development) lines.push(`  ${developmentMode}`, '');
  if (!work) lines.push('  The other drivers run in the workers: see /healthz/drivers', '');
  else if (work.standby) lines.push(`  Standby: ${work.reason}`, '');
  else lines.push(...driverTable(work.drivers));
  lines.push(...driverTable(deliveries), '');
  if (loopbackRegions.length > 0) lines.push(...loopbackWarning(loopbackRegions), '');
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** Without CLOUDYARD_PORT, a busy port is replaced by the next free one. */
function portNote({ port, portIsFixed }: Settings, url: string | null): string[] {
  if (portIsFixed || url === null) return [];
  const actual = portOf(url);
  if (actual === port) return [];
  return [`             (port ${port} is in use by another program, so the API listens on port ${actual})`];
}

function loopbackWarning(regionIds: number[]): string[] {
  return [
    `  Region ${regionIds.join(', ')}: load balancers may have members on loopback (member_networks in the regions file).`,
    '  Do not allow this in production: tenants can reach every service on this host that trusts 127.0.0.1.',
  ];
}

/** One line a driver: its kind, its name, and whether it is real; below it the command that makes it real. */
export function driverTable(drivers: Record<string, DriverStatus>): string[] {
  return Object.entries(drivers).flatMap(([title, status]) => {
    const verdict = !status.real ? 'SIMULATED' : status.healthy ? 'real' : 'real, UNHEALTHY';
    const line = `  ${title.padEnd(15)} ${status.driver.padEnd(12)} ${verdict.padEnd(10)} ${status.detail}`;
    const purpose = status.real ? 'to fix it' : 'to make it real';
    return status.remedy ? [line, `${' '.repeat(18)}${purpose}: ${asRoot(remedyFor(status.remedy))}`] : [line];
  });
}

/** A command that this user can paste into a shell. */
export function asRoot(command: string): string {
  return process.getuid?.() === 0
    ? command.replace(/(^|&& )sudo /g, '$1')
    : command.replace(/(^|&& )(?=apt-get )/g, '$1sudo ');
}
