/** The server that tests and tools start: the bundle that users run, or the sources if this checkout cannot have one. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { serverBundle } from '../bin/server-bundle.mjs';
import { root } from '../src/platform/program-files.ts';

/** The Node that bin/cloudyard.mjs uses in a checkout. */
export const pinnedNode = join(root, 'node_modules', 'node', 'bin', 'node');

const bundle = await serverBundle();
export const serverScript = bundle?.script ?? join(root, 'src', 'main', 'cloudyard.ts');

/** Loaded before sources, as bin/cloudyard.mjs does. */
export const preload = pathToFileURL(join(root, 'bin', 'module-resolution.mjs')).href;

/** Arguments of Node for a program. */
export const preloadsOf = (file: string): string[] => (file.endsWith('.ts') ? ['--import', preload] : []);

/** Compiled code of a bundle is removed with it. */
export const compileCache: Record<string, string> = bundle ? { NODE_COMPILE_CACHE: bundle.cache } : {};
