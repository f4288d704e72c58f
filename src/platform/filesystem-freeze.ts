/**
 * Freezes a filesystem, so that it is consistent while it is copied: programs that write into it wait.
 *
 * Invariant: no filesystem stays frozen, because its clients would wait permanently. A child freezes it, and thaws it when its
 * input ends, so also when this process is killed. The child ignores the signals with which a service manager ends all
 * processes. If the child is killed, too, `thawLeftFrozen` thaws the filesystem: a file names it, and is locked while the
 * child lives.
 */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runChild, startChild } from './child-process.ts';

const recordName = 'frozen';
/** $1: the record; $2: the mount point; $3: its name in the record. */
const FREEZE = `trap '' HUP INT TERM
exec 9>>"$1" && flock 9 && printf %s "$3" >"$1" && fsfreeze --freeze "$2" || exit
echo frozen
cat >/dev/null
fsfreeze --unfreeze "$2" && : >"$1"`;
const THAW = 'fsfreeze --unfreeze "$2"; : >"$1"';

/**
 * Freezes the filesystem that is mounted at `folder`/`name`. Returns the function that thaws it.
 * @throws Error with the reason
 */
export async function freeze(folder: string, name: string): Promise<() => Promise<void>> {
  const args = ['-c', FREEZE, 'sh', join(folder, recordName), join(folder, name), name];
  const child = await startChild('sh', args, { stdio: 'pipe', detached: true });
  let errors = '';
  child.stderr!.on('data', (text: Buffer) => (errors += text.toString()));
  // If the child was killed, nobody reads its input.
  child.stdin!.on('error', () => {});
  const closed = once(child, 'close');
  const thaw = async () => {
    child.stdin!.end();
    await closed;
    await thawLeftFrozen(folder);
  };
  const [first] = await Promise.race([once(child.stdout!, 'data'), closed.then(() => [null])]);
  if (first !== null) return thaw;
  await thaw();
  throw new Error(`${join(folder, name)} cannot be frozen: ${errors.trim()}`);
}

/** Thaws the filesystem below `folder` that a killed process left frozen, if any. One that is being copied stays frozen. */
export async function thawLeftFrozen(folder: string): Promise<void> {
  const record = join(folder, recordName);
  const name = await readFile(record, 'utf8').catch(() => '');
  if (name === '') return;
  // Fails while the child of a copy holds the lock. A killed one releases it in a moment.
  await runChild('flock', ['--timeout', '2', record, 'sh', '-c', THAW, 'sh', record, join(folder, name)]).catch(
    () => {},
  );
}
