#!/usr/bin/env node
/** The `cloudyard` command, on any Node from 20 and with nothing installed yet. */
import { join } from 'node:path';
import { ensureInstalled, main, root, runPinned } from './installed.mjs';

/**
 * Loading the modules makes some 160 MB of short-lived garbage, and a heap that grew for it would not shrink by itself:
 * so a small young generation, and a collection once the server is up (src/main/run.ts, docs/decisions/0010).
 */
const nodeFlags = ['--max-semi-space-size=16', '--expose-gc'];

await main(async () => {
  await ensureInstalled();
  await runPinned(join(root, 'src', 'main', 'cloudyard.ts'), process.argv.slice(2), nodeFlags);
});
