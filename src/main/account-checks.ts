/**
 * Whether the server can read its files. Root, who runs `doctor`, reads every file; the server may run under the account that owns
 * the data directory, as with the Debian packages.
 */
import { existsSync, statSync } from 'node:fs';
import { runChildSync } from '../platform/child-process.ts';
import { shellWord } from '../platform/shell-word.ts';
import { configurationFiles } from './configuration.ts';
import type { Finding } from './finding.ts';
import type { Settings } from './settings.ts';

const printUnreadable = 'for file do [ -r "$file" ] || printf "%s\\n" "$file"; done';

/** No finding if this is not root, or the server is root as well. */
export function checkAccount(settings: Settings): Finding[] {
  const owner = statSync(settings.dataDir, { throwIfNoEntry: false });
  if (process.getuid?.() !== 0 || !owner || owner.uid === 0) return [];
  const { keyFile, backup, tls, oidc } = settings;
  const { regions, quotas } = configurationFiles(settings);
  const secret = [keyFile, backup.passphraseFile, tls.files?.key].filter((file) => file !== undefined);
  const files = [...secret, regions, quotas, ...(oidc ? [oidc.groupsFile] : [])].filter((file) => existsSync(file));
  const unreadable = findUnreadable(owner, files);
  if (unreadable === null) return [];
  const name = 'files of the server';
  if (unreadable.length === 0) return [{ name, ok: true, detail: `account ${owner.uid} can read them` }];
  const fixes = unreadable.map((file) =>
    secret.includes(file) ? `chown ${owner.uid} ${shellWord(file)}` : `chmod a+r ${shellWord(file)}`,
  );
  const detail = `account ${owner.uid}, which owns ${settings.dataDir}, cannot read ${unreadable.join(', ')}`;
  return [{ name, ok: false, detail, remedy: fixes.join(' && ') }];
}

/** With all groups of the account. Null: unknown, because it has no entry in /etc/passwd, or setpriv is not installed. */
function findUnreadable({ uid, gid }: { uid: number; gid: number }, files: string[]): string[] | null {
  const account = ['--reuid', String(uid), '--regid', String(gid), '--init-groups'];
  try {
    const output = runChildSync('setpriv', [...account, 'sh', '-c', printUnreadable, 'sh', ...files], { cwd: '/' });
    return output.split('\n').filter(Boolean);
  } catch {
    return null;
  }
}
