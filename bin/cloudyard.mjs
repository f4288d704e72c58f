#!/usr/bin/env node
/** The `cloudyard` command, on any Node from 20 and with nothing installed yet. */
import { join } from 'node:path';
import { ensureInstalled, main, root, runPinned } from './installed.mjs';

/**
 * A small young generation: loading the modules makes some 160 MB of short-lived garbage, and the heap that grew for it
 * would never shrink again. Idle memory by its size: 4 MiB: 139 MB, 8 MiB: 153 MB,
 * 16 MiB: 181 MB, V8's choice: 250 MB. A smaller one costs throughput: it is collected more often.
 */
const nodeFlags = ['--max-semi-space-size=8'];

await main(async () => {
  await ensureInstalled();
  await runPinned(join(root, 'src', 'main', 'cloudyard.ts'), process.argv.slice(2), nodeFlags);
});
