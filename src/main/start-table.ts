/** What a person reads at start: where it runs, with which token, and what of it is real. */
import type { DriverStatus } from '../platform/driver-status.ts';
import type { Settings } from '../platform/settings.ts';
import type { Work } from './work.ts';

const developmentMode = 'Development mode (CLOUDYARD_DEV): clients may move the clock and have operations fail';

export function printStart(facts: {
  settings: Settings;
  serves: boolean;
  url: string | null;
  token: string | null;
  database: string;
  work: Work | null;
  /** What every process does. */
  deliveries: Record<string, DriverStatus>;
  /** Where members of load balancers may be on loopback. */
  loopbackRegions: number[];
}): void {
  const { serves, url, work, deliveries, loopbackRegions } = facts;
  const lines = ['', 'Cloudyard is ready.', ''];
  if (serves) {
    lines.push(`  API        ${url}`, `  Reference  ${url}/docs`);
    lines.push(
      `  Token      ${facts.token ?? 'printed at the first start; another: npm run cloudyard -- token create --role admin'}`,
    );
  } else if (url) lines.push(`  Metrics    ${url}/metrics`);
  lines.push(`  Database   ${facts.database}`, `  Data       ${facts.settings.dataDir}`, '');
  if (facts.settings.development) lines.push(`  ${developmentMode}`, '');
  if (!work) lines.push('  Other drivers run in the workers: see /healthz/drivers', '');
  else if (work.standingBy) lines.push(`  Standing by: ${work.because}`, '');
  else lines.push(...driverTable(work.drivers));
  lines.push(...driverTable(deliveries), '');
  if (loopbackRegions.length > 0) lines.push(...loopbackWarning(loopbackRegions), '');
  process.stdout.write(`${lines.join('\n')}\n`);
}

function loopbackWarning(regionIds: number[]): string[] {
  return [
    `  Region ${regionIds.join(', ')}: load balancers may have members on loopback (member_networks in the regions file).`,
    '  Do not allow this in production: tenants reach whatever on this host trusts 127.0.0.1.',
  ];
}

/** One line a driver: for what, which, and whether it is real; below it the one line that would make it so. */
export function driverTable(drivers: Record<string, DriverStatus>): string[] {
  return Object.entries(drivers).flatMap(([what, status]) => {
    const verdict = !status.real ? 'SIMULATED' : status.healthy ? 'real' : 'real, UNHEALTHY';
    const line = `  ${what.padEnd(15)} ${status.driver.padEnd(12)} ${verdict.padEnd(10)} ${status.detail}`;
    const purpose = status.real ? 'to make it whole' : 'to make it real';
    return status.remedy ? [line, `${' '.repeat(18)}${purpose}: ${status.remedy}`] : [line];
  });
}
