import { expect, it } from 'vitest';
import { hostShortageOf, isUnavailable } from './db-errors.ts';

const failed = (code: string) =>
  new Error('Failed query', { cause: Object.assign(new Error(`connect ${code}`), { code }) });

it.each([
  ['EMFILE', 'this server has no file descriptors left'],
  ['ENFILE', 'this host has no file descriptors left'],
  ['ENOBUFS', 'this host is out of memory'],
  ['EADDRNOTAVAIL', 'this host has no local ports left'],
  ['EAGAIN', null],
  ['ECONNREFUSED', null],
])('a connection that fails with %s may succeed later', (code, shortage) => {
  expect([isUnavailable(failed(code)), hostShortageOf(failed(code))]).toEqual([true, shortage]);
});

it('other errors are not temporary', () => {
  expect([isUnavailable(failed('EFAULT')), hostShortageOf(failed('EFAULT'))]).toEqual([false, null]);
});
