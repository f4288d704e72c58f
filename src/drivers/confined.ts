/**
 * Starts programs of the data plane with the least privileges that they work with, where we are root: an account of its
 * own for each, no group but its own, only the capabilities that are named, and no way to gain others
 * (`no_new_privs`). Where we are not root they run as we do.
 *
 * Accounts are of the host: the data planes of several data directories run as the same ones.
 */
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { ensureServiceAccount, type ServiceAccount } from '../platform/service-account.ts';
import { findProgram } from './programs.ts';

export interface Command {
  file: string;
  args: string[];
}

/** As `setpriv` names them, such as `net_bind_service`. */
type Capability = string;

export const ACCOUNTS = {
  haproxy: 'cloudyard-haproxy',
  nginx: 'cloudyard-nginx',
  registry: 'cloudyard-registry',
} as const;

export function runsAsRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The account for a program of the data plane, created at first need; null where we are not root. */
export function accountFor(program: keyof typeof ACCOUNTS): ServiceAccount | null {
  if (!runsAsRoot()) return null;
  const account = known.get(program) ?? ensureServiceAccount(ACCOUNTS[program]);
  known.set(program, account);
  return account;
}

const known = new Map<keyof typeof ACCOUNTS, ServiceAccount>();

/** The same command as `account`, or as root without one, with these capabilities and no others. */
export function confined(command: Command, account: ServiceAccount | null, capabilities: Capability[]): Command {
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
 * A folder of `root`'s data directory that lies on a path which every account can enter, for sockets and for what is read
 * under another account. It is gone after a reboot.
 */
export function runtimeFolder(root: string): string {
  const name = createHash('sha256').update(root).digest('hex').slice(0, 16);
  return runsAsRoot() ? `/run/cloudyard/${name}` : join(tmpdir(), `cloudyard-${process.getuid?.()}-${name}`);
}

/** @throws when somebody else has made it */
export function makeRuntimeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== process.getuid?.()) throw new Error(`${folder} belongs to somebody else`);
  chmodSync(folder, 0o711);
}

/** A folder that its account alone can enter, also if an earlier version made it. Not for what root writes to later. */
export function makePrivateFolder(folder: string, account: ServiceAccount | null): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  if (account) chownSync(folder, account.uid, account.gid);
}

/** A folder of root's in which the account may reach what is its own, and list nothing. */
export function makeEnterableFolder(folder: string, account: ServiceAccount | null): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, account ? 0o710 : 0o700);
  if (account) chownSync(folder, 0, account.gid);
}

/** A folder of root's that the account may read. What lies in it must be readable for the account's group. */
export function makeReadableFolder(folder: string, account: ServiceAccount | null): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, account ? 0o750 : 0o700);
  if (account) chownSync(folder, 0, account.gid);
}
