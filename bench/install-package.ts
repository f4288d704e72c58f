/** The Debian packages in a clean root without systemd: from `apt-get install` until a server and a worker are ready. */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildDebianPackages } from '../packaging/deb/build.ts';
import { buildPackage } from '../packaging/npm-package.ts';
import { freePort } from '../test/free-port.ts';
import { version } from '../src/main/version.ts';
import { openDebianHost, prepareDebianRoot } from '../test/packaging/debian-host.ts';
import { quiet } from './quiet.ts';
import type { Row } from './table.ts';
import type { Workplace } from './workplace.ts';

const rounds = 3;
const what = 'installation of the Debian packages until server and worker are ready';

export async function installPackage({ dir }: Workplace): Promise<Row[]> {
  const reason = process.getuid?.() === 0 ? prepareDebianRoot() : 'skipped: this needs root';
  if (reason) return [{ what, why: reason }];
  buildPackage();
  const packages = await buildDebianPackages({ folder: join(dir, 'packages'), version, compression: 'xz' });
  const values: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const place = join(dir, `host-${round}`);
    mkdirSync(join(place, 'files'), { recursive: true });
    for (const { file } of packages) execFileSync('cp', [file, join(place, 'files')]);
    await quiet();
    values.push(await installAndStart(place));
  }
  return [{ what, values, unit: 's', bar: { atMost: 15 } }];
}

/** Seconds. */
async function installAndStart(place: string): Promise<number> {
  const host = openDebianHost(place);
  try {
    const port = await freePort();
    const began = performance.now();
    const { code, output } = await host.run('apt-get install -q -y --no-install-recommends /mnt/*.deb');
    if (code !== 0) throw new Error(output);
    await host.run(`sed -i 's/^CLOUDYARD_PORT=.*/CLOUDYARD_PORT=${port}/' /etc/cloudyard/cloudyard.env`);
    for (const [unit, instance] of [['cloudyard-serve.service'], ['cloudyard-worker@.service', '1']] as const) {
      const started = await host.start(unit, instance);
      if (!started.ready) throw new Error(started.output);
    }
    return (performance.now() - began) / 1000;
  } finally {
    host.close();
  }
}
