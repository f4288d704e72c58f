/** `npm run release [-- --out FOLDER] [--base IMAGE]`: builds all files of a release. Needs a finished `npm run build`. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../../src/platform/program-files.ts';
import { version } from '../../src/main/version.ts';
import { buildImage, imageTool } from '../container/build.ts';
import { buildDebianPackages } from '../deb/build.ts';
import { pack } from '../npm-package.ts';
import { sourceDate } from '../source-date.ts';
import { billOfMaterials } from './bill-of-materials.ts';
import { changelogSection } from './changelog-section.ts';
import { checksums } from './checksums.ts';

const { values } = parseArgs({
  options: { out: { type: 'string', default: join(root, 'release') }, base: { type: 'string' } },
});
const folder = values.out;
// Fails before the long part.
const changes = changelogSection(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version);

const packages = await buildDebianPackages({ folder, version, compression: 'xz' });
const files = [...packages.map(({ file }) => file), pack(folder).file];
write(`cloudyard-${version}.spdx.json`, billOfMaterials(root, version, sourceDate()));
write(`cloudyard-${version}.changes.md`, changes);

const tool = imageTool();
if (tool && values.base) files.push(buildImage({ tool, folder, version, base: values.base }));
else process.stdout.write(`no container image: ${tool ? 'no --base' : 'neither podman nor buildah is installed'}\n`);

writeFileSync(join(folder, 'SHA256SUMS'), await checksums(files));
for (const file of files) process.stdout.write(`${basename(file)}: ${(statSync(file).size / 1e6).toFixed(1)} MB\n`);
process.stdout.write(`SHA256SUMS: ${files.length} files in ${folder}\n`);

function write(name: string, text: string): void {
  const file = join(folder, name);
  writeFileSync(file, text);
  files.push(file);
}
