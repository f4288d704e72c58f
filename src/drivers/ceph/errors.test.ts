import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { cephError, hasErrno } from './errors.ts';

const { errno } = constants;

describe('an error of Ceph', () => {
  it('that says that the cluster does not respond is retried until it does', () => {
    const error = cephError('image.create', errno.ETIMEDOUT, 'timed out');
    expect(error).toMatchObject({ retryable: true, shortage: true, maxRetrySeconds: 20 });
    expect(hasErrno(error, 'ETIMEDOUT')).toBe(true);
  });

  it('of a manager that has not loaded a module yet is retried until it has', () => {
    const message = `Warning: due to ceph-mgr restart, some PG states may not be up to date
Module 'volumes' is not enabled/loaded (required by command 'fs subvolume ls'): use \`ceph mgr module enable volumes\` to enable it`;
    const error = cephError('command', errno.EOPNOTSUPP, message);
    expect(error).toMatchObject({ retryable: true, shortage: true, maxRetrySeconds: 20 });
    expect(cephError('image.create', errno.EOPNOTSUPP, 'not supported')).toMatchObject({ retryable: false });
  });

  it('that an operator has to fix is retried for longer, and a permanent one is not', () => {
    expect(cephError('image.create', errno.ENOSPC, 'full')).toMatchObject({ retryable: true, shortage: true });
    expect(cephError('image.create', errno.EACCES, 'no')).toMatchObject({ retryable: true, shortage: true });
    expect(cephError('image.create', errno.EINVAL, 'invalid')).toMatchObject({ retryable: false });
  });
});
