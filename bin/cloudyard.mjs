#!/usr/bin/env node
/** The `cloudyard` command. Runs on Node 20 or newer, before any dependency is installed. */
import { readFileSync } from 'node:fs';
import { ensureInstalled, main, programFile, runClient, runPinned } from './installed.mjs';
import { allocator, nodeFlags } from './node-flags.mjs';

await main(async () => {
  await ensureInstalled();
  const args = process.argv.slice(2);
  // The client's commands need no flags and, on a new Node, no process of their own.
  const firstWords = JSON.parse(readFileSync(programFile('client/first-words.json'), 'utf8'));
  if (firstWords.includes(args[0])) return runClient(args);
  await runPinned(programFile('main/cloudyard.ts'), args, nodeFlags, allocator);
});
