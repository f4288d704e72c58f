/**
 * The grammar of the `cloudyard` command: which commands exist, how their arguments are parsed, and what help and usage
 * say about them. The commands themselves are in commands/.
 */
import { parseArgs, type ParseArgsConfig } from 'node:util';
import firstWords from '../client/first-words.json' with { type: 'json' };
import { aligned } from '../client/output.ts';
import type { Settings } from './settings.ts';
import { suggestion } from './closest.ts';
import { UsageError } from './usage-error.ts';

interface Option {
  type: 'string' | 'boolean';
  multiple?: boolean;
  default?: string | boolean;
  /** What the usage shows for the value: `N`, `NAME`. */
  value?: string;
  required?: boolean;
  description: string;
}

type Options = Record<string, Option>;
type Values<O extends Options> = ReturnType<typeof parseArgs<{ options: O }>>['values'];

interface Specification<O extends Options> {
  /** One word, or a group and a word: `token create`, `quota requests list`. */
  name: string;
  summary: string;
  /** Positional arguments as the usage shows them: `ID WEIGHT`, or `KIND=LIMIT...` for one or more. Absent: none. */
  operands?: string;
  options?: O;
  run(settings: Settings, values: Values<O>, operands: string[]): Promise<void>;
}

export interface Command extends Omit<Specification<Options>, 'run' | 'options'> {
  options: Options;
  run(settings: Settings, values: object, operands: string[]): Promise<void>;
}

/** A command whose `run` gets the values in the types that its options declare. */
export function command<const O extends Options = Record<never, Option>>(given: Specification<O>): Command {
  return { options: {}, ...given } as Command;
}

/**
 * Returns the command with its arguments.
 * @throws UsageError that carries the usage of the command, or of the group, that the arguments name
 */
export function parseCommandLine(commands: Command[], args: string[]) {
  const { matches, words } = selectCommands(commands, args);
  const [found] = matches;
  const given = args.slice(0, words).join(' ');
  if (found!.name !== given) throw new UsageError(`${given} needs a command`, { usage: usageOf(matches) });
  const { values, operands } = withUsage(found!, () => parseArguments(found!, args.slice(words)));
  return { run: (settings: Settings) => withUsage(found!, () => found!.run(settings, values, operands)) };
}

/** What `help`, or `--help` after some words of a command, prints. */
export function helpOf(commands: Command[], args: string[]): string {
  const words = wordsIn(args);
  if (words.length === 0) return `usage: cloudyard COMMAND\n\n${summaries(commands)}`;
  const { matches } = selectCommands(commands, words);
  const [first] = matches;
  if (matches.length > 1) return `${usageOf(matches)}\n\n${summaries(matches)}`;
  const options = Object.entries(first!.options).map(([name, option]) => [optionOf(name, option), describe(option)]);
  const table = options.length > 0 ? `\n\n${columns(options)}` : '';
  // `host` is a command and a group.
  const others = commands.filter(({ name }) => name.startsWith(`${first!.name} `));
  const related = others.length > 0 ? `\n\nOther commands:\n${summaries(others)}` : '';
  return `${usageOf(matches)}\n\n${first!.summary}.${table}${related}`;
}

/** The words before the first option. Later ones are values, or operands. */
function wordsIn(args: string[]): string[] {
  const others = args.filter((arg) => arg !== '--help' && arg !== '-h');
  const end = others.findIndex((arg) => arg.startsWith('-'));
  return end === -1 ? others : others.slice(0, end);
}

/** The command that the first words name, or the commands of a group. `words` is how many words that took. */
function selectCommands(commands: Command[], args: string[]): { matches: Command[]; words: number } {
  let matches = commands;
  for (let words = 0; ; words++) {
    const whole = matches.find(({ name }) => words > 0 && name.split(' ').length === words);
    const word = args[words] ?? '';
    const isLonger = matches.some(({ name }) => word !== '' && name.split(' ')[words] === word);
    // `host` is a command without operands and a group: another word is a misspelled command.
    const isOption = word === '' || word.startsWith('-');
    const isMisspelled = whole?.operands === undefined && matches.length > 1 && !isOption;
    if (whole && !isLonger && !isMisspelled) return { matches: [whole], words };
    if (words > 0 && isOption) return { matches, words };
    const named = matches.filter(({ name }) => name.split(' ')[words] === word);
    if (named.length === 0) {
      const known = [...wordsAt(matches, words), ...(words === 0 ? firstWords : [])];
      const advice = suggestion(word, known);
      throw new UsageError(`${args.slice(0, words + 1).join(' ')} is not a command${advice}`, {
        // Not the names of `commands`: the client has others.
        usage: words === 0 ? 'usage: cloudyard COMMAND    # cloudyard help lists the commands' : usageOf(matches),
      });
    }
    matches = named;
  }
}

function parseArguments(command: Command, args: string[]): { values: object; operands: string[] } {
  const { options, operands } = command;
  const config = { args, options: options as ParseArgsConfig['options'], allowPositionals: operands !== undefined };
  const { values, positionals } = parseArgs(config);
  const missing = Object.keys(options).find((name) => options[name]!.required && !(name in values));
  if (missing) throw new UsageError(`--${missing} is required`);
  // Of a variable of the shell that is not set: the path would be that of the current folder.
  const empty = Object.entries(values).find(([name, value]) => value === '' && isPath(options[name]!))?.[0];
  if (empty) throw new UsageError(`--${empty} requires a value`);
  const wanted = operands?.split(' ') ?? [];
  const absent = wanted[positionals.length];
  if (absent) throw new UsageError(`${absent.replace('...', '')} is required`);
  const extra = positionals[wanted.length];
  if (extra !== undefined && !operands?.endsWith('...')) throw new UsageError(`unexpected argument '${extra}'`);
  return { values, operands: positionals };
}

const isPath = ({ value = '' }: Option) => /^(DIR|FILE)\b/.test(value);

/** Adds the usage of the command to usage errors of its parser and of the command itself. */
function withUsage<T>(command: Command, work: () => T): T {
  const rethrow = (error: unknown): never => {
    if (error instanceof UsageError) throw new UsageError(error.message, { usage: usageOf([command]), cause: error });
    // The code of a program that failed is its exit status.
    const { code, message } = error as { code?: string | number; message: string };
    if (!String(code).startsWith('ERR_PARSE_ARGS')) throw error;
    // Node's message continues with advice on `--`, which no command needs.
    const [first = ''] = message.split('. ');
    const [, option] = /^Option '(--\S+) <value>' argument missing/.exec(first) ?? [];
    const text = option ? `${option} requires a value` : `${first.charAt(0).toLowerCase()}${first.slice(1)}`;
    throw new UsageError(text, { usage: usageOf([command]), cause: error });
  };
  try {
    const result = work();
    return (result instanceof Promise ? result.catch(rethrow) : result) as T;
  } catch (error) {
    return rethrow(error);
  }
}

/** One line: the whole usage of one command, or the words that may follow. */
function usageOf(commands: Command[]): string {
  const [first] = commands;
  if (commands.length === 1) return `usage: cloudyard ${[first!.name, ...argumentsOf(first!)].join(' ')}`;
  // The words that they share, and those that may follow.
  let depth = 0;
  while (wordsAt(commands, depth).length === 1) depth++;
  const shared = first!.name.split(' ').slice(0, depth);
  return `usage: ${['cloudyard', ...shared, wordsAt(commands, depth).join('|')].join(' ')}`;
}

function argumentsOf({ operands, options }: Command): string[] {
  const parts = Object.entries(options).map(([name, option]) => {
    const text = optionOf(name, option);
    const once = option.required ? text : `[${text}]`;
    if (!option.multiple) return once;
    return option.required ? `${once} [${text}]...` : `${once}...`;
  });
  return operands ? [operands, ...parts] : parts;
}

function optionOf(name: string, { type, value = 'VALUE' }: Option): string {
  return type === 'boolean' ? `--${name}` : `--${name} ${value}`;
}

function describe({ description, default: fallback }: Option): string {
  return typeof fallback === 'string' && fallback !== '' ? `${description} (default ${fallback})` : description;
}

function summaries(commands: Command[]): string {
  return columns(commands.map(({ name, operands, summary }) => [operands ? `${name} ${operands}` : name, summary]));
}

function columns(rows: string[][]): string {
  return aligned(rows)
    .map((line) => `  ${line}`)
    .join('\n');
}

/** The words of the names at this position, each once. */
function wordsAt(commands: Command[], position: number): string[] {
  return [...new Set(commands.flatMap(({ name }) => name.split(' ')[position] ?? []))];
}
