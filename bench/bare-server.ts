import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from './cloudyard.ts';
import type { Workplace } from './workplace.ts';

/** The bare route, in a process of its own, under the same Node, answering these bytes. Returns its URL. */
export async function startBareRoute(workplace: Workplace, bytes: string): Promise<string> {
  const bodyFile = join(workplace.dir, 'bare-body');
  writeFileSync(bodyFile, bytes);
  const port = await freePort();
  const program = fileURLToPath(new URL('bare-route.ts', import.meta.url));
  // Detached as the server is: Linux shares the processors out between sessions before it does between processes.
  const child = spawn(process.execPath, [program, String(port), bodyFile], {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  workplace.closing(async () => {
    child.kill();
    await once(child, 'exit');
  });
  await once(child.stdout, 'data');
  return `http://127.0.0.1:${port}/`;
}
