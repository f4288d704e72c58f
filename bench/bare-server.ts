import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../test/free-port.ts';
import type { Workplace } from './workplace.ts';

/** Starts the bare route in a separate process of the same Node. Returns its URL. */
export async function startBareRoute(workplace: Workplace, bytes: string): Promise<string> {
  const bodyFile = join(workplace.dir, 'bare-body');
  writeFileSync(bodyFile, bytes);
  const port = await freePort();
  const program = fileURLToPath(new URL('bare-route.ts', import.meta.url));
  // Detached like the server, because Linux schedules sessions before processes.
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
