#!/usr/bin/env node
/** The `cloudyard` command. Runs on Node 20 or newer, before any dependency is installed. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureInstalled, main, root, runClient, runPinned, sources } from './installed.mjs';

/**
 * Loading the modules produces about 160 MB of short-lived garbage, and the heap does not shrink by itself afterwards. So
 * the young generation is small, and a collection runs once the server is up (src/main/run.ts, docs/decisions/0010).
 */
const nodeFlags = ['--max-semi-space-size=16', '--expose-gc'];
/** glibc would give each thread an arena of its own, and memory that is free in one is not used by the others. */
const allocator = { MALLOC_ARENA_MAX: '1' };

/** The first words of the client's commands, which need no flags and, on a new Node, no process of their own. */
const firstWords = JSON.parse(readFileSync(join(root, sources, 'client', 'first-words.json'), 'utf8'));

await main(async () => {
  await ensureInstalled();
  if (firstWords.includes(process.argv[2])) return runClient(process.argv.slice(2));
  await runPinned(join(root, 'src', 'main', 'cloudyard.ts'), process.argv.slice(2), nodeFlags, allocator);
});
