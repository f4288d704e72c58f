/**
 * Starts programs of the data plane with least privilege: each has its own account and group, only the listed capabilities,
 * and cannot gain others (`no_new_privs`). If Cloudyard does not run as root, they run as the same user.
 *
 * Accounts belong to the host: the data planes of several data directories share them.
 */
import { hash } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { ensureServiceAccount, type ServiceAccount } from '../platform/service-account.ts';
import { findProgram } from './programs.ts';

export interface Command {
  file: string;
  args: string[];
}

export const ACCOUNTS = {
  haproxy: 'cloudyard-haproxy',
  nginx: 'cloudyard-nginx',
  registry: 'cloudyard-registry',
} as const;

export function runsAsRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The account of a program, created on first use; null if Cloudyard does not run as root. */
export function accountFor(program: keyof typeof ACCOUNTS): ServiceAccount | null {
  if (!runsAsRoot()) return null;
  const account = known.get(program) ?? ensureServiceAccount(ACCOUNTS[program]);
  known.set(program, account);
  return account;
}

const known = new Map<keyof typeof ACCOUNTS, ServiceAccount>();

/**
 * Returns the command that runs `command` as `account` (null: as root) with only these capabilities, which are named as for
 * `setpriv`: `net_bind_service`. Unless Cloudyard runs as root, it is `command` itself.
 * @throws Error if setpriv is not installed
 */
export function confined(command: Command, account: ServiceAccount | null, capabilities: string[]): Command {
  if (!runsAsRoot()) return command;
  const setpriv = findProgram('setpriv');
  if (!setpriv) throw new Error('setpriv is not installed: apt-get install util-linux');
  const only = ['-all', ...capabilities.map((name) => `+${name}`)].join(',');
  const identity = account
    ? ['--reuid', String(account.uid), '--regid', String(account.gid), '--clear-groups', '--ambient-caps', only]
    : [];
  const args = [...identity, '--inh-caps', account ? only : '-all', '--bounding-set', only, '--no-new-privs'];
  return { file: setpriv, args: [...args, '--', command.file, ...command.args] };
}

/**
 * A folder that belongs to the data directory `root` but is on a path that every account can enter, for sockets and for
 * files that other accounts read. A reboot deletes it.
 */
export function runtimeFolder(root: string): string {
  const name = hash('sha256', root).slice(0, 16);
  return runsAsRoot() ? `/run/cloudyard/${name}` : join(tmpdir(), `cloudyard-${process.getuid?.()}-${name}`);
}

/** @throws if another user owns it */
export function makeRuntimeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) throw new Error(`${folder} belongs to another user`);
  chmodSync(folder, 0o711);
}

/** Creates a folder that only its account can enter, and corrects the mode of an existing one. Root must not write to it later. */
export function makePrivateFolder(folder: string, account: ServiceAccount | null): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  if (account) chownSync(folder, account.uid, account.gid);
}

/** Creates a folder of root in which the account can open its own files but not list any. */
export function makeEnterableFolder(folder: string, account: ServiceAccount | null): void {
  makeRootFolder(folder, account, 0o710);
}

/** Creates a folder of root that the account can read. Files in it must be readable by the account's group. */
export function makeReadableFolder(folder: string, account: ServiceAccount | null): void {
  makeRootFolder(folder, account, 0o750);
}

function makeRootFolder(folder: string, account: ServiceAccount | null, mode: number): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, account ? mode : 0o700);
  if (account) chownSync(folder, 0, account.gid);
}
