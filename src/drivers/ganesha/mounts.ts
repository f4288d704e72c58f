/** Lists the mounts of this host. */
import { readFile } from 'node:fs/promises';

/** Every mount by mount point; of several at one point, the last. */
export async function mounts(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const line of (await readFile('/proc/self/mountinfo', 'utf8')).trimEnd().split('\n')) {
    const [before = '', after = ''] = line.split(' - ');
    found.set(unescapeMount(before.split(' ')[4] ?? ''), after.split(' ')[1] ?? '');
  }
  return found;
}

/** The kernel escapes blanks and backslashes as three octal digits. */
function unescapeMount(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
