/** The file that a daemon writes its output to. Readable only by its owner, because programs log what clients send. */
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  statfsSync,
} from 'node:fs';
import { dirname } from 'node:path';

const maxBytes = 10 * 1024 * 1024;
const { O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_WRONLY } = constants;
/** `O_NONBLOCK`: the open of a named pipe does not wait for a reader. */
const flags = O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK;
/** Of a symbolic link, of a named pipe without a reader, and of a folder. */
const otherKinds = new Set(['ELOOP', 'ENXIO', 'EISDIR']);

/**
 * Opens a log to append to it, and truncates one above 10 MiB. `start`: its size before the daemon writes. Root opens logs in
 * folders of other accounts, which may have put a link to any file there. @throws if the file is not a regular one, or has links
 */
export function openDaemonLog(file: string): { descriptor: number; start: number } {
  mkdirSync(dirname(file), { recursive: true });
  const descriptor = openRegular(file);
  fchmodSync(descriptor, 0o600);
  const { size } = fstatSync(descriptor);
  if (size <= maxBytes) return { descriptor, start: size };
  ftruncateSync(descriptor);
  return { descriptor, start: 0 };
}

function openRegular(file: string): number {
  const refusal = `the log ${file} must be a regular file without links; remove it`;
  let descriptor: number;
  try {
    descriptor = openSync(file, flags, 0o600);
  } catch (cause) {
    throw otherKinds.has((cause as NodeJS.ErrnoException).code ?? '') ? new Error(refusal, { cause }) : cause;
  }
  const found = fstatSync(descriptor);
  if (found.isFile() && found.nlink === 1) return descriptor;
  closeSync(descriptor);
  throw new Error(refusal);
}

/** For messages: the last 20 lines that were written after `start`, or why there are none. */
export function endOfLog(file: string, start: number): string {
  const text = readFileSync(file).subarray(start).toString('utf8').trimEnd();
  if (text !== '') return `its log ${file} ends:\n${text.split('\n').slice(-20).join('\n')}`;
  const reason = statfsSync(dirname(file)).bavail === 0 ? ', whose disk is full' : '';
  return `it wrote nothing to its log ${file}${reason}`;
}
