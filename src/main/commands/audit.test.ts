import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { cloneDatabase } from '../../../test/harness.ts';
import { auditCommands } from './audit.ts';
import { runCommand } from './test-command.ts';

const folder = mkdtempSync(join(tmpdir(), 'cloudyard-audit-command-'));
/** U+009B begins an escape sequence, as ESC [ does. */
const changes = [{ table: 'volumes', id: '1', before: null, after: { name: 'a\u001b[31mred\u009b2J\u007f\u2028é' } }];
let database: Awaited<ReturnType<typeof cloneDatabase>>;

beforeAll(async () => {
  database = await cloneDatabase(inject('postgres'));
  const client = new pg.Client(database.connection);
  await client.connect();
  const text = `insert into audit_entries (at, operation, origin, changes) values (now(), 'createVolume', $1, $2)`;
  await client.query(text, [{ user_agent: 'browser\u009b31m' }, JSON.stringify(changes)]).finally(() => client.end());
});
afterAll(async () => {
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function exported(format: string): Promise<string> {
  const args = ['audit', 'export', '--format', format, '--operation', 'createVolume'];
  return (await runCommand(auditCommands, args, database, { CLOUDYARD_DATA_DIR: folder })).stdout;
}

// eslint-disable-next-line no-control-regex
const controls = /[\u0000-\u0009\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

it('an export as JSON has no character that controls a terminal, and loses none', async () => {
  const text = await exported('jsonl');
  expect(text).not.toMatch(controls);
  expect(JSON.parse(text)).toMatchObject({ changes, origin: { user_agent: 'browser\u009b31m' } });
});

it('an export as CSV shows such characters as escapes', async () => {
  const text = await exported('csv');
  expect(text).not.toMatch(controls);
  expect(text).toContain(String.raw`,browser\u009b31m,`);
  expect(JSON.parse(/"(\[[^]*\])"\r\n$/.exec(text)![1]!.replaceAll('""', '"'))).toEqual(changes);
});
