/** What a person reads at start: where it runs, with which token, and what of it is real. */
import type { DriverStatus } from '../platform/driver-status.ts';
import type { Settings } from '../platform/settings.ts';
import type { Drivers } from './drivers.ts';

export function printStart(facts: {
  settings: Settings;
  url: string | null;
  token: string | null;
  database: string;
  drivers: Drivers | null;
}): void {
  const lines = ['', 'Cloudyard is ready.', ''];
  if (facts.url) {
    lines.push(`  API        ${facts.url}`, `  Reference  ${facts.url}/docs`);
  }
  lines.push(
    `  Token      ${facts.token ?? 'printed at the first start; another: npm run cloudyard -- token create --role admin'}`,
    `  Database   ${facts.database}`,
    `  Data       ${facts.settings.dataDir}`,
    '',
  );
  if (facts.drivers) lines.push(...driverTable({ 'file shares': facts.drivers.fileShare.status() }), '');
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** One line a driver: for what, which, and whether it is real; below it the one line that would make it so. */
export function driverTable(drivers: Record<string, DriverStatus>): string[] {
  return Object.entries(drivers).flatMap(([what, status]) => {
    const verdict = !status.real ? 'SIMULATED' : status.healthy ? 'real' : 'real, UNHEALTHY';
    const line = `  ${what.padEnd(13)} ${status.driver.padEnd(10)} ${verdict.padEnd(10)} ${status.detail}`;
    return status.remedy ? [line, `${' '.repeat(16)}to make it real: ${status.remedy}`] : [line];
  });
}
