/** `cloudyard batch`: many commands in one process, whose start costs more than most commands. */
import { Command } from 'commander';
import { CommandError, usageError } from './errors.ts';
import { type Io, readText, type Run } from './io.ts';

export function addBatchCommand(program: Command, io: Io, run: Run): void {
  program
    .command('batch')
    .summary('Run the commands of a file in one process')
    .description(
      'Run the commands of a file in one process: one a line, without "cloudyard", with the quotes of a shell. Empty lines and ' +
        'lines that start with # are ignored. The first command that fails ends the batch with its exit code.',
    )
    .argument('[file]', 'the file, or - for standard input', '-')
    .option('--keep-going', 'run all commands; the exit code is that of the first one that failed')
    .action(async (file: string, { keepGoing }: { keepGoing?: boolean }) => {
      const commands = (await readText(file, io))
        .split('\n')
        .map((line, i) => ({ number: i + 1, words: wordsOf(line, i + 1) }));
      const nested = commands.find(({ words }) => words[0] === 'batch');
      if (nested) throw usageError(`line ${nested.number}: batch cannot run batch`);
      let failed: CommandError | undefined;
      for (const { number, words } of commands) {
        if (words.length === 0) continue;
        const code = await run(words, io);
        if (code !== 0) failed ??= new CommandError(`line ${number} failed`, code);
        if (failed && !keepGoing) break;
      }
      if (failed) throw failed;
    });
}

/** Splits a line as a shell does, without expansions. @throws CommandError for a quote without an end */
export function wordsOf(line: string, number: number): string[] {
  if (/^\s*(#|$)/.test(line)) return [];
  const words: string[] = [];
  const pattern = /\s*((?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\])+)/gy;
  let end = 0;
  for (const match of line.matchAll(pattern)) {
    words.push(unquoted(match[1]!));
    end = match.index + match[0].length;
  }
  if (line.slice(end).trim() !== '') throw usageError(`line ${number}: a quote has no end`);
  return words;
}

function unquoted(word: string): string {
  return word.replaceAll(
    /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/g,
    (_, single?: string, double?: string, escaped?: string) => {
      return single ?? double?.replaceAll(/\\(["\\$`])/g, '$1') ?? escaped ?? '';
    },
  );
}
