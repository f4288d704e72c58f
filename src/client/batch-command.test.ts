import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { addBatchCommand, wordsOf } from './batch-command.ts';
import { CommandError } from './errors.ts';

describe('wordsOf', () => {
  it.each([
    [`file-share list  -o json`, ['file-share', 'list', '-o', 'json']],
    [`volume create --name 'my disk' --tags "a=x y"`, ['volume', 'create', '--name', 'my disk', '--tags', 'a=x y']],
    [`api POST /x -f name="it's" -f b='"q"'`, ['api', 'POST', '/x', '-f', "name=it's", '-f', 'b="q"']],
    [String.raw`a \"b\" "c\"d" e\ f ''`, ['a', '"b"', 'c"d', 'e f', '']],
    ['  # comment', []],
    ['', []],
  ])('of %j', (line, words) => expect(wordsOf(line, 1)).toEqual(words));

  it.each([`a 'b`, `a "b`, `a b\\`])('refuses %j', (line) => {
    expect(() => wordsOf(line, 7)).toThrow('line 7: a quote has no end');
  });
});

describe('batch', () => {
  const batch = async (text: string, ...options: string[]) => {
    const seen: string[] = [];
    const io = { env: {}, out: () => {}, err: { write: () => {} }, readInput: async () => text };
    const program = new Command().exitOverride();
    addBatchCommand(program, io, async ([first = '']) => {
      seen.push(first);
      return Number(first) || 0;
    });
    const failure = await program.parseAsync(['batch', ...options], { from: 'user' }).then(
      () => undefined,
      (error: CommandError) => `${error.exitCode}: ${error.message}`,
    );
    return { seen, failure };
  };

  it('ends at the first command that fails, with its exit code', async () => {
    expect(await batch('one\n\n4\ntwo\n')).toEqual({ seen: ['one', '4'], failure: '4: line 3 failed' });
    expect(await batch('one\ntwo')).toEqual({ seen: ['one', 'two'], failure: undefined });
  });

  it('runs all commands with --keep-going', async () => {
    expect(await batch('4\n3\none', '--keep-going')).toEqual({ seen: ['4', '3', 'one'], failure: '4: line 1 failed' });
  });

  it('runs nothing if a line is not valid', async () => {
    expect(await batch("one\ntwo 'x")).toEqual({ seen: [], failure: '2: line 2: a quote has no end' });
    expect(await batch('one\nbatch x')).toEqual({ seen: [], failure: '2: line 2: batch cannot run batch' });
  });
});
