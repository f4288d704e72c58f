#!/usr/bin/env node
/** The `cloudyard` command. Runs on Node 20 or newer, before any dependency is installed. */
import { join } from 'node:path';
import { ensureInstalled, main, root, runPinned } from './installed.mjs';

/**
 * Loading the modules produces about 160 MB of short-lived garbage, and the heap does not shrink by itself afterwards. So
 * the young generation is small, and a collection runs once the server is up (src/main/run.ts, docs/decisions/0010).
 */
const nodeFlags = ['--max-semi-space-size=16', '--expose-gc'];
/** glibc would give each thread an arena of its own, and memory that is free in one is not used by the others. */
const allocator = { MALLOC_ARENA_MAX: '2' };

await main(async () => {
  await ensureInstalled();
  await runPinned(join(root, 'src', 'main', 'cloudyard.ts'), process.argv.slice(2), nodeFlags, allocator);
});
