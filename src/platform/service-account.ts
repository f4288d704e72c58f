/**
 * System accounts for daemons that root starts: one account for each daemon, so that none can read or signal another. They
 * have no login shell, no home directory and no group but their own.
 *
 * Invariant: one `useradd` at a time. Two that create the same account both succeed, and the second replaces the uid of
 * the first. They therefore run under a lock, and check for the account first.
 *
 * Failure modes: throws an error that names the account and the command that creates it.
 */
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import { runChildSync } from './child-process.ts';

export interface ServiceAccount {
  name: string;
  uid: number;
  gid: number;
}

const LOCK = '/run/cloudyard-accounts.lock';
const LOCK_SECONDS = 60;
/** The directories of `useradd`, whatever PATH root has. */
const ADMIN_PATH = '/usr/sbin:/usr/bin:/sbin:/bin';
const NO_LOGIN = ['/usr/sbin/nologin', '/sbin/nologin'];

/** $1 is the account, the other arguments create it. An existing group of that name becomes its group. */
const CREATE = `
name=$1; shift
id -u "$name" >/dev/null 2>&1 && exit 0
if getent group "$name" >/dev/null; then set -- "$@" --gid "$name"; else set -- "$@" --user-group; fi
exec "$@" "$name"`;

/** Returns the account `name`, and creates it first if it does not exist. Only root can create accounts. */
export function ensureServiceAccount(name: string): ServiceAccount {
  const account = findServiceAccount(name) ?? createServiceAccount(name);
  if (account.uid === 0) throw new Error(`the account ${name} has uid 0; give it a uid of its own`);
  return account;
}

/** Null if the account does not exist. */
export function findServiceAccount(name: string): ServiceAccount | null {
  return parseAccount(name, readFileSync('/etc/passwd', 'utf8')) ?? parseAccount(name, queryNameService(name));
}

export function hasAccount(uid: number): boolean {
  const isOf = (line: string) => line.split(':')[2] === String(uid);
  return readFileSync('/etc/passwd', 'utf8').split('\n').some(isOf) || queryNameService(String(uid)) !== '';
}

function createServiceAccount(name: string): ServiceAccount {
  const shell = NO_LOGIN.find((path) => existsSync(path)) ?? '/bin/false';
  const command = ['useradd', '--system', '--no-create-home', '--home-dir', '/nonexistent', '--shell', shell];
  try {
    closeSync(openSync(LOCK, 'a', 0o600));
    const locked = ['--timeout', String(LOCK_SECONDS), LOCK, 'sh', '-c', CREATE, 'sh', name, ...command];
    runChildSync('flock', locked, { env: { PATH: ADMIN_PATH, LC_ALL: 'C' }, cwd: '/' });
    const created = findServiceAccount(name);
    if (created) return created;
    throw new Error('useradd succeeded, but /etc/passwd does not list the account');
  } catch (cause) {
    const { message, stderr } = cause as Error & { stderr?: string };
    throw new Error(
      `cannot create the system account ${name} (${stderr?.trim() || message.split('\n')[0]}); ` +
        `create it and start again: ${command.join(' ')} --user-group ${name}`,
      { cause },
    );
  }
}

function parseAccount(name: string, passwd: string): ServiceAccount | null {
  const fields = passwd
    .split('\n')
    .map((line) => line.split(':'))
    .find(([first]) => first === name);
  return fields ? { name, uid: Number(fields[2]), gid: Number(fields[3]) } : null;
}

/** For accounts of a directory service; '' if none has it, or the host has no `getent`. */
function queryNameService(nameOrUid: string): string {
  try {
    return runChildSync('getent', ['passwd', nameOrUid], { env: { PATH: ADMIN_PATH } });
  } catch {
    return '';
  }
}
