/** The file that a daemon writes its output to. Readable only by its owner, because programs log what clients send. */
import { fchmodSync, fstatSync, ftruncateSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';

const maxBytes = 10 * 1024 * 1024;

/** Opens a log to append to it, and truncates one above 10 MiB. `start`: its size before the daemon writes. */
export function openDaemonLog(file: string): { descriptor: number; start: number } {
  mkdirSync(dirname(file), { recursive: true });
  const descriptor = openSync(file, 'a', 0o600);
  fchmodSync(descriptor, 0o600);
  const { size } = fstatSync(descriptor);
  if (size <= maxBytes) return { descriptor, start: size };
  ftruncateSync(descriptor);
  return { descriptor, start: 0 };
}

/** The last 20 lines that were written after `start`. */
export function endOfLog(file: string, start: number): string {
  return readFileSync(file).subarray(start).toString('utf8').trimEnd().split('\n').slice(-20).join('\n');
}
