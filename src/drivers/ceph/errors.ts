/** Turns error numbers of Ceph into driver errors: which may be retried, which need space, and which are permanent. */
import { constants } from 'node:os';
import { DriverError } from '../driver.ts';

const { errno } = constants;

const shortages = new Set<number>([errno.ENOSPC, errno.EDQUOT, errno.ENOMEM]);
const refusals = new Set<number>([errno.EPERM, errno.EACCES]);
/** A retry fails in the same way. */
const permanent = new Set<number>([errno.EINVAL, errno.ERANGE, errno.EFBIG, errno.EOPNOTSUPP, errno.ENAMETOOLONG]);

/** The error number of a failed call, as the cause of its DriverError. */
class CephFailure extends Error {
  readonly errno: number;
  constructor(errno: number, message: string) {
    super(message);
    this.errno = errno;
  }
}

/** `operation` failed with an error number of Ceph (0: unknown). */
export function cephError(operation: string, number: number, message: string): DriverError {
  // Ceph ends most calls before the time limit of bridge.ts.
  if (number === errno.ETIMEDOUT || isModuleAbsent(number, message)) return unreachable(operation, message);
  const shortage = shortages.has(number);
  const refused = refusals.has(number);
  return new DriverError(`ceph ${operation}: ${message} (errno ${number})`, {
    customerMessage: shortage
      ? 'the storage cluster has no space left; the operator must add some'
      : refused
        ? 'the storage cluster denies the operation; the operator must check the permissions of its user'
        : permanent.has(number)
          ? 'the storage cluster rejects the operation; ask the operator'
          : 'the storage cluster could not apply the change',
    retryable: !permanent.has(number),
    // An operator has to act, so it is retried for longer.
    shortage: shortage || refused,
    cause: new CephFailure(number, message),
  });
}

/** A manager that has just become active answers so until it has loaded its modules. */
function isModuleAbsent(number: number, message: string): boolean {
  return number === errno.EOPNOTSUPP && /Module '.+' is not enabled/.test(message);
}

/** The cluster, or the process that calls it, does not respond. */
export function unreachable(operation: string, why: string): DriverError {
  return new DriverError(`ceph ${operation}: ${why}`, {
    customerMessage: 'the storage cluster does not respond',
    retryable: true,
    shortage: true,
    maxRetrySeconds: 20,
    cause: new CephFailure(errno.ETIMEDOUT, why),
  });
}

/** Whether an error is a failed call with this error number, for example `ENOENT`. */
export function hasErrno(error: unknown, name: keyof typeof errno): boolean {
  const cause = error instanceof DriverError ? error.cause : null;
  return cause instanceof CephFailure && cause.errno === errno[name];
}
