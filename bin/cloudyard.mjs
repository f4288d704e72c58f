#!/usr/bin/env node
/** The `cloudyard` command, on any Node from 20 and with nothing installed yet. */
import { join } from 'node:path';
import { ensureInstalled, main, root, runPinned } from './installed.mjs';

await main(async () => {
  await ensureInstalled();
  await runPinned(join(root, 'src', 'main', 'cloudyard.ts'), process.argv.slice(2));
});
