/** `npm run package:deb [-- --out FOLDER]`: builds the Debian packages into release/. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../src/platform/program-files.ts';
import { version } from '../../src/main/version.ts';
import { buildDebianPackages } from './build.ts';

const { values } = parseArgs({ options: { out: { type: 'string', default: join(root, 'release') } } });
for (const { file, installedBytes } of await buildDebianPackages({ folder: values.out, version, compression: 'xz' })) {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
  process.stdout.write(`${file}: ${megabytes(statSync(file).size)}, installed ${megabytes(installedBytes)}\n`);
}
