/** Builds the console of a checkout in the background, after the start of a server: bin/console-build.mjs. */
import { join } from 'node:path';
import { runChild } from '../platform/child-process.ts';
import type { Logger } from '../platform/log.ts';
import { root } from '../platform/program-files.ts';

const script = join(root, 'bin', 'console-build.mjs');

/** A failed build is logged, and does not affect the server. Returns a function that stops the build. */
export function buildConsole(log: Logger): () => Promise<void> {
  const stopping = new AbortController();
  const building = runChild(process.execPath, [script], { signal: stopping.signal })
    .then(({ stdout }) => {
      if (stdout !== '') log.info(stdout.trim());
    })
    .catch((error: { stderr?: string; message: string }) => {
      if (stopping.signal.aborted) return;
      const reason = error.stderr?.trim() || error.message;
      log.warn({ reason }, 'the console was not built; fix the reason and run: npm run console:build');
    });
  return async () => {
    stopping.abort();
    await building;
  };
}
