#!/usr/bin/env node
/** `run.mjs <tool or script> args…`: runs a development tool or a TypeScript file under the pinned Node. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureInstalled, main, preload, root, runPinned } from './installed.mjs';

/** The package of each tool. */
const TOOLS = {
  vitest: 'vitest',
  oxlint: 'oxlint',
  biome: '@biomejs/biome',
  tsc: 'typescript',
  'drizzle-kit': 'drizzle-kit',
  vite: 'vite',
};

const [what, ...args] = process.argv.slice(2);

await main(async () => {
  const isScript = /\.m?[jt]s$/.test(what ?? '');
  if (!isScript && !Object.hasOwn(TOOLS, what ?? '')) {
    throw new Error(`usage: run.mjs <${Object.keys(TOOLS).join(' | ')} | script.ts> [argument…]`);
  }
  await ensureInstalled();
  await runPinned(isScript ? what : binOf(what), args, { flags: ['--import', preload] });
});

function binOf(tool) {
  const dir = join(root, 'node_modules', TOOLS[tool]);
  const { bin } = JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8'));
  return join(dir, typeof bin === 'string' ? bin : bin[tool]);
}
