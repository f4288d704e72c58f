/** Arguments that a command refuses before it opens the database. */
import { expect, it, vi } from 'vitest';
import { parseCommandLine } from '../command-line.ts';
import { run } from '../run.ts';
import { commands } from './list.ts';

vi.mock('../run.ts', () => ({ run: vi.fn<typeof run>(async () => {}) }));

it.each<[string[], string]>([
  [['token', 'create', '--client', '99999999999'], '--client must be at most 2147483647, not 99999999999'],
  [['audit', 'export', '--client', '2147483648'], '--client must be at most 2147483647, not 2147483648'],
  [['token', 'create', '--project', '2147483648'], '--project must be at most 2147483647, not 2147483648'],
  [['client', 'weight', '2147483648', '2'], 'ID must be at most 2147483647, not 2147483648'],
  [['client', 'create', ' '], 'NAME '],
  [['client', 'create', 'bell\u0007'], 'NAME '],
  [['client', 'create', 'a'.repeat(256)], 'NAME '],
  [['quota', 'set', 'sfs_count=1=2'], 'the limit of sfs_count must be a whole number, not "1=2"'],
  [['quota', 'set', 'sfs_count=1', 'sfs_size=2', 'sfs_count=3'], 'sfs_count is set twice'],
  [['quota', 'set', 'sfs_count'], 'sfs_count has no limit; write sfs_count=10 or sfs_count=default'],
  [['quota', 'requests', 'approve', '2147483648'], 'ID must be at most 2147483647, not 2147483648'],
  [['host', 'drain', '2147483648', 'h1'], 'REGION must be at most 2147483647, not 2147483648'],
  [['host', 'forget', 'one', 'h1'], 'REGION must be a whole number, not "one"'],
])('%j: %s', async (args, message) => {
  await expect(parseCommandLine(commands, args).run({} as never)).rejects.toThrow(message);
});

it('a worker gets each region once', async () => {
  const args = ['worker', '--region', '2', '--region', '1', '--region', '2'];
  await parseCommandLine(commands, args).run({} as never);
  expect(run).toHaveBeenCalledWith({}, { serve: false, work: [2, 1] });
});
