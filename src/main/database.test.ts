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
])('the error of a database that cannot be reached names it without its password: %s', async (url, shown) => {
  const settings = readSettings({ DATABASE_URL: url }, checkoutPlaces('/checkout'), false);
  await expect(openDatabase(settings, silentLogger)).rejects.toThrow(
    `the database ${shown} cannot be reached: connect ECONNREFUSED 127.0.0.1:9`,
  );
});
