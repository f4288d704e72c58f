import pg from 'pg';
import { expect, it } from 'vitest';
import { hostShortageOf, isBusy, isUnavailable, shortageOf } from './db-errors.ts';

const failed = (code: string) =>
  new Error('Failed query', { cause: Object.assign(new Error(`connect ${code}`), { code }) });

it.each([
  ['EMFILE', 'this server has no file descriptors left'],
  ['ENFILE', 'this host has no file descriptors left'],
  ['ENOBUFS', 'this host is out of memory'],
  ['EADDRNOTAVAIL', 'this host has no local ports left'],
  ['EAGAIN', null],
  ['ECONNREFUSED', null],
  ['28P01', null],
  ['3D000', null],
  ['55000', null],
])('a connection that fails with %s may succeed later', (code, shortage) => {
  expect([isUnavailable(failed(code)), hostShortageOf(failed(code))]).toEqual([true, shortage]);
});

it.each([
  ['could not extend file "base/5/16385": Disk quota exceeded', 'mdextend', 'has exceeded its disk quota'],
  ['could not write init file', 'write_item', 'cannot write to its disk'],
  ['cache lookup failed for type 16385', 'format_type_extended', null],
])('an internal error of PostgreSQL is a shortage only if the disk is full: %s', (message, routine, shortage) => {
  const cause = Object.assign(new pg.DatabaseError(message, 100, 'error'), { code: 'XX000', routine });
  const error = new Error('Failed query', { cause });
  expect([isUnavailable(error), shortageOf(error)]).toEqual([shortage !== null, shortage]);
});

it.each([
  ['53000', 'has no file descriptors left'],
  ['53100', 'has no space left on its disk'],
  ['58030', 'cannot access its disk'],
])('a database that fails with %s %s', (code, shortage) => {
  const error = Object.assign(new pg.DatabaseError('could not open file', 100, 'error'), { code });
  expect([isUnavailable(error), shortageOf(error)]).toEqual([true, shortage]);
});

it.each(['timeout expired', 'Query read timeout', 'Connection terminated unexpectedly'])(
  'an error of the client, %s, is temporary',
  (message) => expect(isUnavailable(new Error('Failed query', { cause: new Error(message) }))).toBe(true),
);

it('other errors are not temporary', () => {
  expect([isUnavailable(failed('EFAULT')), hostShortageOf(failed('EFAULT'))]).toEqual([false, null]);
});

it.each([
  ['57P03', true],
  ['53300', true],
  ['ECONNREFUSED', false],
  ['28P01', false],
])('a server that refuses a connection with %s may accept another one: %s', (code, busy) => {
  expect(isBusy(failed(code))).toBe(busy);
});

it.each([
  ['connect', true],
  ['spawn', false],
])('a server is busy if %s fails with EAGAIN: %s', (syscall, busy) => {
  expect(isBusy(Object.assign(new Error('EAGAIN'), { code: 'EAGAIN', syscall }))).toBe(busy);
});
