import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';

/** The module of the API reference contains its script as a string of 4.3 MB; in a file of its own, compressed, it takes 1.3 MB. */
export function compressReferenceScript(modules: string): void {
  const folder = join(modules, '@scalar/fastify-api-reference/dist');
  const module = readFileSync(join(folder, 'index.js'), 'utf8');
  const [declaration, literal] = /^var standalone_default = (".*");$/m.exec(module) ?? [];
  if (!declaration) throw new Error('@scalar/fastify-api-reference: the declaration of its script was not found');
  writeFileSync(join(folder, 'standalone.js.gz'), gzipSync(runInNewContext(literal!) as string, { level: 9 }));
  const loading = [
    "import { readFileSync } from 'node:fs';",
    "import { gunzipSync } from 'node:zlib';",
    "var standalone_default = gunzipSync(readFileSync(new URL('standalone.js.gz', import.meta.url))).toString();",
  ];
  writeFileSync(
    join(folder, 'index.js'),
    module.replace(declaration, () => loading.join('\n')),
  );
}
