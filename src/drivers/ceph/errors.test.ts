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

  it('that an operator has to fix is retried for longer, and a permanent one is not', () => {
    expect(cephError('image.create', errno.ENOSPC, 'full')).toMatchObject({ retryable: true, shortage: true });
    expect(cephError('image.create', errno.EACCES, 'no')).toMatchObject({ retryable: true, shortage: true });
    expect(cephError('image.create', errno.EINVAL, 'invalid')).toMatchObject({ retryable: false });
  });
});
