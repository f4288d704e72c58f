import { expect, it } from 'vitest';
import { createDamage, reportsDamage } from './damage.ts';
import { silentLogger } from '../../platform/log.ts';

it.each([
  ["find: '/srv/x/data': Structure needs cleaning", true],
  ["find: '/srv/x': Input/output error\nchown: cannot access './y': Too many levels of symbolic links\n", true],
  ["find: '/srv/x': Input/output error\nchown: changing ownership of './y': Operation not permitted", false],
  ["find: '/srv/x': Transport endpoint is not connected", false],
  ['', false],
])('the output %j reports damage only: %s', (stderr, expected) => {
  expect(reportsDamage(stderr)).toBe(expected);
});

it.each([
  ['EIO', -5, true],
  ['Unknown system error -117', -117, true],
  ['ENOSPC', -28, false],
  ['ENOTCONN', -107, false],
])('an error %s is damage: %s', async (code, errno, expected) => {
  const error = Object.assign(new Error(code), { code, errno, path: '/srv/x' });
  const { tolerate } = createDamage(silentLogger);
  const done = tolerate(() => Promise.reject(error)).catch((thrown: unknown) => thrown);
  expect(await done).toBe(expected ? false : error);
});
