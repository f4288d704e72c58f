/** Says what this host has of the real parts, what is missing, and the line that installs it. */
import { findGanesha } from '../drivers/ganesha/detect.ts';
import { driverTable } from './start-table.ts';

export async function doctor(): Promise<void> {
  const ganesha = findGanesha();
  const lines = [
    `node          ${process.version}`,
    '',
    'Drivers on this host, as this user:',
    ...driverTable({
      'file shares': {
        driver: ganesha.programs ? 'ganesha' : 'simulated',
        real: ganesha.programs !== null,
        healthy: true,
        detail: ganesha.detail,
        remedy: ganesha.remedy,
      },
    }),
    '',
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
}
