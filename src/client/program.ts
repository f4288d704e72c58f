/**
 * The grammar of the client's commands, for Commander. Only the commands of the group that the arguments name are built, and
 * only the named command gets its options: building all takes 30 ms.
 */
import { Argument, Command, Option } from 'commander';
import { hasFields, optionOf } from './body.ts';
import { usageError } from './errors.ts';
import type { Io, Run } from './io.ts';
import { kindOf } from './names.ts';
import { addCommonOptions, addWaitOptions } from './program-options.ts';
import { runOperation, type RunOptions } from './resource-command.ts';
import {
  choicesOf,
  operandNames,
  type Operation,
  propertiesOf,
  type Schema,
  table,
  typeOf,
  valueSchema,
} from './table.ts';
import { isObject } from './values.ts';

/** Commands that are not operations, by their first word. */
const others: Record<string, () => Promise<(program: Command, io: Io, run: Run) => void>> = {
  context: async () => (await import('./context-command.ts')).addContextCommands,
  login: async () => (await import('./login-command.ts')).addLoginCommand,
  api: async () => (await import('./api-command.ts')).addApiCommand,
  apply: async () => (await import('./apply/command.ts')).addApplyCommands,
  diff: async () => (await import('./apply/command.ts')).addApplyCommands,
  batch: async () => (await import('./batch-command.ts')).addBatchCommand,
  completion: async () => (await import('./completion.ts')).addCompletionCommand,
};

/** `run` is for commands that run others. @throws CommanderError and CommandError, which have exit codes */
export async function runProgram(args: string[], io: Io, run: Run): Promise<void> {
  const program = await buildProgram(args, io, run);
  await program.parseAsync(args, { from: 'user' });
}

/** The commands of the group that `args` name, in a program that does not exit. */
export async function buildProgram(args: string[], io: Io, run: Run = async () => 0): Promise<Command> {
  const program = configured(new Command('cloudyard'), io);
  const other = others[args[0] ?? ''];
  if (other) (await other())(program, io, run);
  else addResourceCommands(program, args, io);
  inherit(program, program);
  return program;
}

function configured(program: Command, io: Io): Command {
  return program
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text),
      writeErr: (text) => void io.err.write(text),
      outputError: (text, write) => write(errorText(text)),
    })
    .showSuggestionAfterError()
    .helpCommand(false)
    .helpOption('-h, --help', 'show this help');
}

/** Commander's error as one of ours; an unknown command without a suggestion says where the commands are listed. */
const errorText = (text: string) =>
  text.replace(/^error: /, 'cloudyard: ').replace(/(?<=: unknown command '.*')\n$/, '; --help lists the commands\n');

/** Commander copies settings to commands that `command()` creates, but not to those of `addCommand()`. */
function inherit(program: Command, command: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(program);
    child.helpCommand(false);
    // Commander shows the summary in lists only.
    if (child.description() === '' && child.commands.length === 0) child.description(child.summary());
    inherit(program, child);
  }
}

function addResourceCommands(program: Command, args: string[], io: Io): void {
  const operations = table.operations.filter(({ command }) => command[0] === args[0]);
  // Reached from a batch only: bin/cloudyard.mjs runs other commands as those of the operator.
  if (operations.length === 0) throw usageError(`unknown command ${JSON.stringify(args[0] ?? '')}`);
  for (const operation of operations) {
    const { command, hidden, summary } = operation;
    const group = command.slice(0, -1).reduce((parent, word, depth) => {
      return parent.commands.find((child) => child.name() === word) ?? groupOf(parent, command.slice(0, depth + 1));
    }, program);
    const leaf = new Command(command.at(-1)!).summary(summary);
    group.addCommand(leaf, { hidden: hidden === true });
    if (command.every((word, i) => args[i] === word)) addParameters(leaf, operation, io);
  }
}

function groupOf(parent: Command, words: string[]): Command {
  const group = new Command(words.at(-1)!);
  const inside = table.operations.filter(
    ({ command, hidden }) => !hidden && words.every((word, i) => command[i] === word),
  );
  const actions = [...new Set(inside.map(({ command }) => command[words.length]!))];
  parent.addCommand(group.summary(actions.join(', ')), { hidden: inside.length === 0 });
  return group;
}

/** The operands and options of an operation. */
function addParameters(command: Command, operation: Operation, io: Io): void {
  const { path, query = {}, description } = operation;
  command.description(description ? `${operation.summary}. ${description}` : operation.summary);
  for (const name of operandNames(path)) command.addArgument(operandOf(name));
  const sources = new Map<string, { source: 'query' | 'field'; name: string }>();
  const add = (name: string, schema: Schema, required: boolean, source: 'query' | 'field') => {
    const option = fieldOption(optionOf(name, source), schema, required);
    sources.set(option.attributeName(), { source, name });
    command.addOption(option);
  };
  for (const [name, schema] of Object.entries(query)) {
    if (!sources.has(name)) add(name, schema, schema.required === true, 'query');
  }
  if (operation.body && hasFields(operation)) {
    for (const [name, { schema, required }] of propertiesOf(operation.body)) add(name, schema, required, 'field');
  }
  if (operation.body) command.option('--body <JSON>', 'the body as JSON or YAML, @FILE, or - for standard input');
  addCommonOptions(command, path);
  if (operation.result === 'tasks' || operation.id === 'revertVolume') addWaitOptions(command);
  command.action(async (...given: unknown[]) => {
    const options = command.opts<RunOptions & Record<string, unknown>>();
    const texts: Record<'query' | 'field', Record<string, string[]>> = { query: {}, field: {} };
    for (const [attribute, { source, name }] of sources) {
      const given = options[attribute];
      // `--flag` without a value is true.
      if (given !== undefined) texts[source][name] = given === true ? ['true'] : (given as string[]);
    }
    const operands = given.slice(0, operandNames(path).length) as string[];
    await runOperation({ operation, operands, options, query: texts.query, fields: texts.field }, io);
  });
}

function operandOf(name: string): Argument {
  const { description } = table.parameters[name] ?? {};
  const byName = table.lists[name] ? ', or its name' : '';
  return new Argument(`<${kindOf(name).replaceAll(' ', '-')}>`, `${description ?? name}${byName}`);
}

/** All texts of the option are collected; `values.ts` gives them their type. */
function fieldOption(flag: string, schema: Schema, required: boolean): Option {
  const value = typeOf(schema) === 'boolean' ? '[BOOL]' : `<${placeholder(schema)}>`;
  const notes = [valueSchema(schema).description, choicesNote(schema), requiredNote(schema, required)];
  const text = notes.filter((note) => note).join('; ');
  const option = new Option(`${flag} ${value}`, text);
  return option.argParser((given: string, before: string[] | true = []) => [...(before === true ? [] : before), given]);
}

function placeholder(schema: Schema): string {
  if (typeOf(schema) === 'integer' || typeOf(schema) === 'number') return 'N';
  if (isObject(schema)) return 'KEY=VALUE,...';
  if (typeOf(schema) === 'array') return isObject(schema.items ?? {}) ? 'KEY=VALUE,...' : 'VALUE';
  return 'VALUE';
}

/** A body without the field gets its only choice. */
function requiredNote(schema: Schema, required: boolean): string | undefined {
  if (!required) return undefined;
  return choicesOf(schema)?.length === 1 ? 'default' : 'required';
}

function choicesNote(schema: Schema): string | undefined {
  const choices = choicesOf(schema);
  return choices && choices.length <= 20 ? `one of: ${choices.join(', ')}` : undefined;
}
