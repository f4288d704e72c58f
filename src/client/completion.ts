/**
 * `cloudyard completion bash|zsh|fish` prints a script for the shell, which asks `cloudyard __complete WORDS…` for candidates:
 * commands, options, their values, and the names of resources on the server.
 */
import { Argument, type Command, type Option } from 'commander';
import { methods } from './api-command.ts';
import { contextsFile, readContexts, targetOf } from './contexts.ts';
import { createApi, isPaged, withQuery } from './http.ts';
import type { Io } from './io.ts';
import { createNames, referenceOf } from './names.ts';
import { choicesOf, operandNames, type Operation, operationById, operationOf, propertiesOf, table } from './table.ts';
import firstWords from './first-words.json' with { type: 'json' };

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/** For each response: a shell waits for the candidates. */
const longestWaitMs = 1000;
const mostNames = 200;

const scripts: Record<Shell, string> = {
  bash: `_cloudyard() {
  local IFS=$'\\n' word
  COMPREPLY=()
  while read -r word; do COMPREPLY+=("$(printf '%q' "$word")"); done \\
    < <(cloudyard __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _cloudyard cloudyard
`,
  zsh: `#compdef cloudyard
_cloudyard() {
  local -a candidates
  candidates=("\${(@f)$(cloudyard __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$candidates" ]] && compadd -a candidates || _files
}
# As a file in fpath, this is the body of the function when it is called first.
if [[ $funcstack[1] == _cloudyard ]]; then _cloudyard; else compdef _cloudyard cloudyard; fi
`,
  fish: `function __cloudyard_complete
    set -l words (commandline -opc)
    cloudyard __complete $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c cloudyard -a '(__cloudyard_complete)'
`,
};

export function addCompletionCommand(program: Command, io: Io): void {
  program
    .command('completion')
    .summary('Print the completion script of a shell')
    .description('Print the completion script of a shell. For bash: source <(cloudyard completion bash)')
    .addArgument(new Argument('<shell>', 'the shell').choices(shells))
    .action((shell: Shell) => io.out(scripts[shell]));
}

/** Prints the candidates for the last word, one a line. Fails silently: a shell has no place for messages. */
export async function complete(words: string[], io: Io): Promise<void> {
  const current = words.at(-1) ?? '';
  const found = await candidates(words.slice(0, -1), current, io).catch(() => []);
  const matching = [...new Set(found)].filter((candidate) => candidate.startsWith(current));
  io.out(matching.map((candidate) => `${candidate}\n`).join(''));
}

async function candidates(before: string[], current: string, io: Io): Promise<string[]> {
  const ofOperator = operatorWords(before, current);
  if (before.length === 0) return [...firstWords.filter((word) => !word.startsWith('_')), ...ofOperator];
  if (ofOperator.length > 0) return ofOperator;
  const typed = await typedCommand(before, io);
  const { command, open } = typed;
  if (open && takesValue(open, current)) return optionValues(open, typed, io);
  if (current.startsWith('-')) return [...command.options.flatMap(({ long }) => long ?? []), '--help'];
  if (command.commands.length > 0 && typed.operands.length === 0) return namesOfCommands(command);
  return operandValues(typed, io);
}

interface Typed {
  command: Command;
  /** The words of the command. */
  words: string[];
  operands: string[];
  /** Texts of options by their names in the program. */
  options: Record<string, string>;
  /** The option whose value is typed next. */
  open?: Option;
}

/** The command that the words begin with, and its arguments. */
async function typedCommand(before: string[], io: Io): Promise<Typed> {
  let command = await (await import('./program.ts')).buildProgram(before, io);
  const words: string[] = [];
  const childOf = (word: string) => command.commands.find((child) => child.name() === word);
  for (let next = childOf(before[0]!); next; next = childOf(before[words.length] ?? '')) {
    words.push(next.name());
    command = next;
  }
  const typed: Typed = { command, words, operands: [], options: {} };
  // bash separates the value of `--project=shop` as a word, and the sign as another one.
  for (const word of before.slice(words.length).filter((each) => each !== '=')) {
    const [flag, value] = word.startsWith('--') ? word.split(/=(.*)/s) : [word];
    const option = command.options.find(({ long, short }) => flag === long || flag === short);
    const { open } = typed;
    delete typed.open;
    if (open && takesValue(open, word)) typed.options[open.attributeName()] = word;
    else if (option && value !== undefined) typed.options[option.attributeName()] = value;
    else if (option && (option.required || option.optional)) typed.open = option;
    else if (!word.startsWith('-')) typed.operands.push(word);
  }
  return typed;
}

/** An option whose value is optional has none before another option. */
function takesValue(option: Option, word: string): boolean {
  return !option.optional || !word.startsWith('-');
}

function namesOfCommands(command: Command): string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((child) => child.name());
}

/** The next words of the operator's commands, or the options of the command that is named. */
function operatorWords(before: string[], current: string): string[] {
  const known = Object.entries(table.operatorCommands).map(([name, options]) => ({
    words: name.split(' '),
    options,
  }));
  const named = known.find(({ words }) => words.every((word, i) => before[i] === word));
  if (named) return current.startsWith('-') ? named.options.map((name) => `--${name}`) : [];
  return known
    .filter(({ words }) => before.every((word, i) => words[i] === word))
    .map(({ words }) => words[before.length]!);
}

function namesOfContexts(io: Io): string[] {
  return Object.keys(readContexts(contextsFile(io.env)).contexts);
}

async function optionValues({ long, argChoices }: Option, typed: Typed, io: Io): Promise<string[]> {
  const operation = operationOf(typed.words);
  if (argChoices) return argChoices;
  if (long === '--columns') return operation?.fields ?? [];
  if (long === '--context') return namesOfContexts(io);
  // Those of a context to add are on its server, whose token is not known.
  if (typed.words[0] === 'context') return [];
  if (long === '--project' || long === '--region') return namesOf(`${long.slice(2)}_id`, {}, typed, io);
  const name = long!.replace(/^--(field-|query-)?/, '').replaceAll('-', '_');
  const schema = operation?.query?.[name] ?? (operation?.body && propertiesOf(operation.body).get(name)?.schema);
  const choices = schema && choicesOf(schema);
  if (choices) return choices.map(String);
  const parameter = operation && referenceOf(name);
  return parameter === undefined ? [] : namesOf(parameter, {}, typed, io);
}

async function operandValues(typed: Typed, io: Io): Promise<string[]> {
  const { command, words, operands } = typed;
  const [first, second] = words;
  const argument = command.registeredArguments[operands.length];
  if (!argument) return [];
  if (argument.argChoices) return argument.argChoices;
  if (first === 'api') return operands.length === 0 ? methods : table.operations.map(({ path }) => path);
  // The name of a context to add is a new one.
  if (first === 'context') return second === 'add' ? [] : namesOfContexts(io);
  const operation = operationOf(words);
  if (!operation) return [];
  const names = operandNames(operation.path);
  return namesOf(
    names[operands.length]!,
    Object.fromEntries(operands.map((value, i) => [names[i]!, value])),
    typed,
    io,
  );
}

async function namesOf(
  parameter: string,
  values: Record<string, string>,
  { options }: Typed,
  io: Io,
): Promise<string[]> {
  const list = listOf(parameter);
  if (!list) return [];
  const api = createApi(targetOf(options, io.env), longestWaitMs);
  const path = await createNames(api).path(list.path, values);
  const paged = isPaged(list) ? withQuery(path, { limit: mostNames }) : path;
  const { body } = await api.send({ method: 'GET', path: paged });
  return (body.results as { name?: string; id?: unknown }[]).map(({ name, id }) => String(name ?? id));
}

/** Lists of ids with names, and of what is identified by its name. */
function listOf(parameter: string): Operation | undefined {
  const byId = table.lists[parameter];
  if (byId !== undefined) return operationById(byId);
  const show = table.operations.find(({ method, path }) => method === 'GET' && path.endsWith(`/{${parameter}}`));
  const collection = show?.path.slice(0, -`/{${parameter}}`.length);
  return table.operations.find(({ method, path, result }) => {
    return method === 'GET' && path === collection && result === 'list';
  });
}
