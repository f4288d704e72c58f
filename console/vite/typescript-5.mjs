/**
 * Preloaded into the generator of the console's API types: openapi-typescript uses the compiler API of TypeScript 5, which
 * TypeScript 7, the one of this repository, does not have.
 */
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, nextResolve) {
    return nextResolve(specifier === 'typescript' ? 'typescript-5' : specifier, context);
  },
});
