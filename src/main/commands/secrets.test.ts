import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { cloneDatabase } from '../../../test/harness.ts';
import { secretCommands } from './secrets.ts';
import { runCommand } from './test-command.ts';

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
  const rotate = ['secrets', 'rotate-key', '--lost'];
  await expect(runCommand(secretCommands, rotate, database, { CLOUDYARD_DATA_DIR: folder })).rejects.toThrow(
    '--lost has nothing to replace: no server has created the keys of registries yet; start a server',
  );
  expect(existsSync(join(folder, 'secret.keys'))).toBe(false);
});
