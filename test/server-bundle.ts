/**
 * Bundles a server with its packages, for the processes that tests start: loading the bundle takes half of the CPU time of
 * loading its 1,400 modules. `startByBin` of test/processes.ts and bench/ start the sources themselves, as users do.
 *
 * Invariants: modules find their files as without the bundle, because `import.meta` and `__dirname` keep their values; and imports
 * have the result that bin/module-resolution.mjs gives them.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import type { Plugin } from 'rolldown';
import { root } from '../src/main/root.ts';

/** Below node_modules, so that what packages require later is found. The same for all runs, for Node's compile cache. */
const folder = join(root, 'node_modules', '.cache', 'server-bundle');

export default async function bundleServer(): Promise<void> {
  if (process.env['TEST_SERVER_SCRIPT']) return;
  const bundle = await rolldown({
    input: { cloudyard: join(root, 'src', 'main', 'cloudyard.ts') },
    platform: 'node',
    plugins: [withoutHttp2, keepPlaces],
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({
    format: 'esm',
    keepNames: true,
    entryFileNames: '[name].mjs',
    chunkFileNames: '[name].mjs',
  });
  await bundle.close();
  mkdirSync(folder, { recursive: true });
  const names = output.map(({ fileName }) => fileName);
  for (const part of output) if (part.type === 'chunk') replaceFile(join(folder, part.fileName), part.code);
  for (const name of readdirSync(folder)) if (!names.includes(name)) rmSync(join(folder, name), { force: true });
  process.env['TEST_SERVER_SCRIPT'] = join(folder, 'cloudyard.mjs');
}

const withoutHttp2: Plugin = {
  name: 'without-http2',
  resolveId: (id, importer) =>
    id === 'node:http2' && importer?.endsWith('/fastify/lib/server.js') ? { id: 'node:http', external: true } : null,
};

const keepPlaces: Plugin = {
  name: 'keep-places',
  transform(code, id) {
    if (!id.startsWith(root)) return null;
    const values = { dirname: dirname(id), filename: id, url: pathToFileURL(id).href };
    const place = /\b(?:import\.meta\.(dirname|filename|url)|__(dirname|filename))\b/g;
    return code.replace(place, (_, ofModule: keyof typeof values, ofScript: keyof typeof values) =>
      JSON.stringify(values[ofModule ?? ofScript]),
    );
  },
};

/** Another run may read the file now. */
function replaceFile(path: string, text: string): void {
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, text);
  renameSync(unfinished, path);
}
