import pg from 'pg';
import { beforeAll, expect, it } from 'vitest';
import { auditCommands } from './audit.ts';
import { useCommands } from './test-command.ts';

const { connection, run } = useCommands(auditCommands);
/** U+009B begins an escape sequence, as ESC [ does. */
const changes = [{ table: 'volumes', id: '1', before: null, after: { name: 'a\u001b[31mred\u009b2J\u007f\u2028é' } }];

beforeAll(async () => {
  const client = new pg.Client(connection());
  await client.connect();
  const text = `insert into audit_entries (at, operation, origin, changes) values (now(), 'createVolume', $1, $2)`;
  await client.query(text, [{ user_agent: 'browser\u009b31m' }, JSON.stringify(changes)]).finally(() => client.end());
});

async function exported(format: string): Promise<string> {
  const args = ['audit', 'export', '--format', format, '--operation', 'createVolume'];
  return (await run(args)).stdout;
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
