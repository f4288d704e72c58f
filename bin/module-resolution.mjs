/**
 * Preloaded into every process that runs TypeScript: resolves the imports within drizzle-orm, typebox and the sources, two
 * thirds of all modules, without Node's lookups in the file system.
 *
 * For each import of a .js file Node parses the whole package.json of its package, and that of drizzle-orm has 180 KB. With
 * some 500 imports this took 0.4 s of CPU time and 140 MB of garbage in every server, command and test process
 * (docs/decisions/0043-start-cost.md). The lookups for the 373 modules of typebox took 35 ms,
 * those for the sources 25 ms.
 *
 * Invariant: the result equals Node's own, except for `node:http2`, which Fastify requires and the server does not use: it
 * takes 8 MB. All three are ES modules, so `format` is always `module` or `module-typescript`.
 */
import { registerHooks } from 'node:module';

const inPackage = /\/node_modules\/(?:drizzle-orm|typebox)\/(?!.*\/node_modules\/)/;
const inSources = /^(?!.*\/node_modules\/).*\.ts$/;
const packageImports = new Map();

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier.startsWith('.') && inPackage.test(context.parentURL ?? '') && context.conditions.includes('import')) {
      return { url: new URL(specifier, context.parentURL).href, format: 'module', shortCircuit: true };
    }
    if (specifier === 'node:http2' && context.parentURL?.endsWith('/fastify/lib/server.js')) {
      return nextResolve('node:http', context);
    }
    if (/^\..*\.ts$/.test(specifier) && inSources.test(context.parentURL ?? '')) {
      return { url: new URL(specifier, context.parentURL).href, format: 'module-typescript', shortCircuit: true };
    }
    if (!/^(drizzle-orm|typebox)\b/.test(specifier) || !context.conditions.includes('import')) {
      return nextResolve(specifier, context);
    }
    const known = packageImports.get(specifier) ?? { ...nextResolve(specifier, context), shortCircuit: true };
    packageImports.set(specifier, known);
    return known;
  },
});
