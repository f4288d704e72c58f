/**
 * Which account owns a cluster of the embedded PostgreSQL, and which accounts may connect to it.
 *
 * Invariants:
 * - A cluster of root belongs to an account that nothing else uses, unless it is in the data directory of a user. The
 *   account `postgres` of a Debian package is shared with its server, and `nobody` with other programs.
 * - The socket authenticates by the uid of the peer: only root and the user that runs PostgreSQL may connect, whatever the
 *   modes of the directories are.
 * - Root writes nothing through a path that the account of the cluster controls, because the account may have put a link
 *   there.
 */
import { existsSync, statSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { runChildSync } from './child-process.ts';
import { livePostmaster } from './embedded-postgres-pid-file.ts';
import { readOrEmpty } from './read-or-empty.ts';
import { ensureServiceAccount, hasAccount, type ServiceAccount } from './service-account.ts';

export type Account = Pick<ServiceAccount, 'uid' | 'gid'>;

/** The account that runs the server when this process is root; created if it does not exist. */
const SERVICE_ACCOUNT = 'cloudyard-postgres';
const NOBODY = 65534;
/** The database role, and the name of the map in pg_ident.conf. */
const ROLE = 'cloudyard';

/** The account of a cluster that root creates: in the data directory of a user, whose services may start it later, that user. */
export function accountOfNewCluster(dataDir: string): Account {
  const { uid, gid } = statSync(dataDir);
  // initdb needs an account with a name.
  return isUser(uid) && hasAccount(uid) ? { uid, gid } : ensureServiceAccount(SERVICE_ACCOUNT);
}

const isUser = (uid: number) => uid !== 0 && uid !== NOBODY;

/**
 * Returns the account of an existing cluster that root starts. A cluster in the data directory of a user keeps that user. The
 * service account takes any other cluster, such as one that was copied from a host with other uids.
 */
export function claimCluster(dir: string, dataDir: string): Account {
  const account = ensureServiceAccount(SERVICE_ACCOUNT);
  const { uid, gid } = statSync(dir);
  if (uid === account.uid) return account;
  if (isUser(uid) && uid === statSync(dataDir).uid) return { uid, gid };
  const pid = livePostmaster(join(dir, 'data'));
  if (pid !== null) {
    throw new Error(
      `PostgreSQL on ${dir} runs as uid ${uid}, but root runs it as ${SERVICE_ACCOUNT}. ` +
        `Stop the Cloudyard that started it, or if none runs, PostgreSQL itself: kill -INT ${pid}`,
    );
  }
  // `--from` skips hard links to files of other accounts, and symlinks are not followed.
  const change = ['--recursive', '--no-dereference', `--from=${uid}`, `${account.uid}:${account.gid}`];
  runChildSync('chown', [...change, dir]);
  return account;
}

/** The log of a cluster that root starts in the data directory of a user: that user also writes it. */
export function createLog(file: string, account: Account | null): void {
  if (account && !existsSync(file) && statSync(dirname(file)).uid === account.uid) writeAs(account, file, '\n');
}

/** Allows only root and the current user to connect to the cluster of `account` (null: the current user). */
export function restrictConnections(pgData: string, account: Account | null): void {
  const pid = livePostmaster(pgData);
  // Under root, a running server has these files from its start, perhaps by a user.
  if (account && pid !== null) return;
  const { hba, ident } = authentication();
  const written = [
    writeAs(account, join(pgData, 'pg_hba.conf'), hba),
    writeAs(account, join(pgData, 'pg_ident.conf'), ident),
  ];
  if (written.includes(true) && pid !== null) process.kill(pid, 'SIGHUP');
}

function authentication(): { hba: string; ident: string } {
  const head = '# Cloudyard writes this file at each start.\n';
  const users = [...new Set(['root', userInfo().username])];
  const line = (user: string) => `${ROLE} "${user.replaceAll('"', '""')}" ${ROLE}\n`;
  return { hba: `${head}local all ${ROLE} peer map=${ROLE}\n`, ident: head + users.map(line).join('') };
}

/** True when the file had other content. */
function writeAs(account: Account | null, file: string, text: string): boolean {
  if (readOrEmpty(file) === text) return false;
  const write = 'umask 077; cat >"$1.$$" && mv "$1.$$" "$1"';
  runChildSync('sh', ['-c', write, 'sh', file], { ...account, input: text, cwd: dirname(file) });
  return true;
}
