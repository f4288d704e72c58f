#!/usr/bin/env node
/** The `cloudyard` command. Runs on Node 20 or newer, before any dependency is installed. */
import { join } from 'node:path';
import { ensureInstalled, isCheckout, main, root, runPinned } from './installed.mjs';
import { allocator, nodeFlags } from './node-flags.mjs';

/** Node does not strip types below node_modules, so an installed package contains dist/ in place of src/. */
const script = isCheckout ? ['src', 'main', 'cloudyard.ts'] : ['dist', 'main', 'cloudyard.js'];

await main(async () => {
  await ensureInstalled();
  await runPinned(join(root, ...script), process.argv.slice(2), nodeFlags, allocator);
});
