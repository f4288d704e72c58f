/**
 * Bundles programs with their packages: `bundle.mjs FOLDER SOURCE…`, where a SOURCE is below src/ and its bundle has the same
 * place below FOLDER (docs/decisions/0053-bundle.md). Files that are not programs are copied unchanged, and `licences.txt`
 * has the licences of the packages. Used by the first start of a checkout and by `npm run build`.
 *
 * Invariants: FOLDER is complete when it exists. Imports have the result that module-resolution.mjs gives them. Parts that a
 * program imports when it needs them stay files of their own, so that a short command loads little.
 *
 * Failure modes: exit code 1 and the reason on standard error; FOLDER does not exist.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { main, root } from './installed.mjs';

/** The first starts threads from files beside its own; the second contains a text of 4 MB. */
const separatePackages = ['pino', '@scalar/fastify-api-reference'];

/** As in module-resolution.mjs. */
const withoutHttp2 = {
  name: 'without-http2',
  resolveId: (id, importer) =>
    id === 'node:http2' && importer?.endsWith('/fastify/lib/server.js') ? { id: 'node:http', external: true } : null,
};

const [folder, ...sources] = process.argv.slice(2);
const programs = sources.filter((path) => path.endsWith('.ts'));

await main(async () => {
  const { rolldown } = await import('rolldown');
  const bundle = await rolldown({
    input: Object.fromEntries(programs.map((path) => [path.replace(/\.ts$/, ''), join(root, 'src', path)])),
    external: separatePackages,
    platform: 'node',
    plugins: [withoutHttp2],
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'parts/[name].js',
  });
  await bundle.close();
  const unfinished = `${folder}.${process.pid}`;
  try {
    write(unfinished, output);
    renameSync(unfinished, folder);
  } catch (err) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another process has made the same bundle meanwhile.
    if (err.code !== 'ENOTEMPTY' && err.code !== 'EEXIST') throw err;
  }
});

function write(unfinished, output) {
  const files = [
    ...output.map(({ fileName, code }) => [fileName, code]),
    ...sources.filter((path) => !programs.includes(path)).map((path) => [path, readFileSync(join(root, 'src', path))]),
    ['package.json', '{ "type": "module" }\n'],
    ['licences.txt', licences(output)],
  ];
  for (const [name, content] of files) {
    const path = join(unfinished, name);
    mkdirSync(dirname(path), { recursive: true });
    // Before the folder gets its name: a power loss would leave empty files.
    writeFileSync(path, content, { flush: true });
  }
}

/** Most licences require their text in each copy. */
function licences(output) {
  const modules = output.flatMap((chunk) => Object.keys(chunk.modules));
  const folders = modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? []);
  const sections = [...new Set(folders)].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const notices = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
    const texts = notices.map((file) => readFileSync(join(folder, file), 'utf8').trim());
    return [`## ${name} ${version} (${license})`, ...texts].join('\n\n');
  });
  return `${['# Licences of bundled packages', ...new Set(sections.sort())].join('\n\n')}\n`;
}
