/** Commands in the guides: each must be a command of the client or of the operator, with options that it has. */
import { globSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import type { Io } from '../src/client/io.ts';
import { buildProgram } from '../src/client/program.ts';
import { commands } from '../src/main/commands/list.ts';
import { parseCommandLine } from '../src/main/command-line.ts';
import firstWords from '../src/client/first-words.json' with { type: 'json' };

const io: Io = { env: {}, out: () => {}, err: { write: () => {} }, readInput: async () => '' };
const guides = globSync(['README.md', 'docs/*.md', 'docs/guides/*.md']);

/** The shell blocks of a guide. A command that continues on the next line is one line. */
function shellOf(guide: string): string {
  const text = readFileSync(guide, 'utf8').replaceAll('\\\n', ' ');
  return [...text.matchAll(/^ *```sh\n([^]*?)^ *```/gm)].map(([, block]) => block!.replaceAll(/#.*$/gm, '')).join('');
}

/** The words of each call. */
const callsOf = (guide: string): string[][] =>
  [...shellOf(guide).matchAll(/(?<=^ *(?:\w+=\S+ )*|\$\()cloudyard ((?:"[^"]*"|'[^']*'|[^\s)|>;"'])[^\n)|>;]*)/gm)].map(
    ([, call = '']) => call.match(/"[^"]*"|'[^']*'|\S+/g) ?? [],
  );

/** The error of a call; null: it has none. */
async function errorOf(words: string[]): Promise<string | null> {
  if (!firstWords.includes(words[0]!)) return errorOfOperator(words);
  let command: Command = await buildProgram(words, io);
  let depth = 0;
  for (const word of words) {
    const child = command.commands.find((each) => each.name() === word);
    if (!child) break;
    command = child;
    depth += 1;
  }
  if (command.commands.length > 0) return `${words.join(' ')}: no such command`;
  const flags = command.options.flatMap(({ short, long }) => [short, long]);
  const unknown = words.slice(depth).find((word) => /^--?[a-z]/.test(word) && !flags.includes(word));
  return unknown === undefined ? null : `${words.join(' ')}: ${unknown} is not an option`;
}

function errorOfOperator(words: string[]): string | null {
  try {
    parseCommandLine(commands, words);
    return null;
  } catch (error) {
    return `${words.join(' ')}: ${(error as Error).message}`;
  }
}

describe('the commands of', () => {
  it.each(guides.filter((guide) => callsOf(guide).length > 0))('%s exist, with their options', async (guide) => {
    const errors = await Promise.all(callsOf(guide).map(errorOf));
    expect(errors.filter((error) => error !== null)).toEqual([]);
  });

  it('guides that use curl through a function define it', () => {
    const undefinedIn = guides.filter((guide) => {
      const shell = shellOf(guide);
      return /\bapi (-X \w+ )?"?\$URL/.test(shell) && !shell.includes('api() {');
    });
    expect(undefinedIn).toEqual([]);
  });
});
