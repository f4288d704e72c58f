import { expect, it } from 'vitest';
import { silentLogger } from '../platform/log.ts';
import { checkoutPlaces } from '../platform/program-files.ts';
import { openDatabase } from './database.ts';
import { readSettings } from './settings.ts';

it.each([
  ['postgres://me:pa55word@127.0.0.1:9/cloudyard', 'postgres://me:…@127.0.0.1:9/cloudyard'],
  ['postgres://me:pa@55@127.0.0.1:9/cloudyard', 'postgres://me:…@127.0.0.1:9/cloudyard'],
  ['postgres://127.0.0.1:9/cloudyard?password=pa55&user=me', 'postgres://127.0.0.1:9/cloudyard?password=…&user=me'],
  ['postgres://127.0.0.1:9/cloudyard', 'postgres://127.0.0.1:9/cloudyard'],
  ['postgres://127.0.0.1:9/a?user=me@example.org', 'postgres://127.0.0.1:9/a?user=me@example.org'],
  ['postgres://me:pa@55@127.0.0.1:9/a?user=me@example.org', 'postgres://me:…@127.0.0.1:9/a?user=me@example.org'],
  ['postgres://me@example.org:pa55@127.0.0.1:9/a', 'postgres://me@example.org:…@127.0.0.1:9/a'],
])('the error of a database that cannot be reached names it without its password: %s', async (url, shown) => {
  const settings = readSettings({ DATABASE_URL: url }, checkoutPlaces('/checkout'), false);
  await expect(openDatabase(settings, silentLogger)).rejects.toThrow(
    `the database ${shown} cannot be reached: connect ECONNREFUSED 127.0.0.1:9`,
  );
});

it.each(['pa/55', 'pa?55', 'pa#55', '5@5/x'])(
  'the error of an invalid URL does not show the password %s',
  async (password) => {
    const url = `postgres://me:${password}@127.0.0.1:9/cloudyard`;
    const settings = readSettings({ DATABASE_URL: url }, checkoutPlaces('/checkout'), false);
    await expect(openDatabase(settings, silentLogger)).rejects.toThrow(
      'the database postgres://me:…@127.0.0.1:9/cloudyard cannot be reached: ',
    );
  },
);
