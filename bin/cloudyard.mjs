#!/usr/bin/env node
/** The `cloudyard` command. Runs on Node 20 or newer, before any dependency is installed. */
import { readFileSync } from 'node:fs';
import {
  endWithNpm,
  ensureInstalled,
  isCheckout,
  main,
  preload,
  programFile,
  runClient,
  runPinned,
} from './installed.mjs';
import { allocator as environment, nodeFlags as flags } from './node-flags.mjs';
import { serverBundle } from './server-bundle.mjs';

/** The channel closes when this process is killed, and a server then ends (src/main/run.ts). */
const stdio = ['inherit', 'inherit', 'inherit', 'ipc'];
// As the flag of the server (node-flags.mjs).
process.on('SIGUSR1', () => {});

await main(async () => {
  await ensureInstalled();
  const args = process.argv.slice(2);
  // The client's commands need no flags and, on a new Node, no process of their own.
  const firstWords = JSON.parse(readFileSync(programFile('client/first-words.json'), 'utf8'));
  if (firstWords.includes(args[0])) return runClient(args);
  endWithNpm();
  const program = programFile('main/cloudyard.ts');
  if (!isCheckout) await runPinned(program, args, { flags, environment, stdio });
  const bundle = await serverBundle();
  if (bundle) await runPinned(bundle.script, args, { flags, environment, stdio, cache: bundle.cache });
  await runPinned(program, args, { flags: [...flags, '--import', preload], environment, stdio });
});
