import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { cloneDatabase } from '../../../test/harness.ts';
import { parseCommandLine } from '../command-line.ts';
import { checkoutPlaces } from '../../platform/program-files.ts';
import { readSettings } from '../settings.ts';
import { secretCommands } from './secrets.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-secrets-command-'));
let database: Awaited<ReturnType<typeof cloneDatabase>>;

beforeAll(async () => {
  database = await cloneDatabase(inject('postgres'));
});
afterAll(async () => {
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

it('a rotation with --lost before the first start of a server has nothing to replace, and creates no key file', async () => {
  const { connectionString, user, host, port, database: name } = database.connection;
  const url = connectionString ?? `postgres://${user}@${encodeURIComponent(host!)}:${port}/${name}`;
  const settings = readSettings(
    { DATABASE_URL: url, CLOUDYARD_DATA_DIR: folder },
    checkoutPlaces(process.cwd()),
    false,
  );
  await expect(parseCommandLine(secretCommands, ['secrets', 'rotate-key', '--lost']).run(settings)).rejects.toThrow(
    '--lost has nothing to replace: no server has created the keys of registries yet; start a server',
  );
  expect(existsSync(settings.keyFile)).toBe(false);
});
