/**
 * `cloudyard completion bash|zsh|fish` prints a script for the shell, which asks `cloudyard __complete WORDS…` for candidates:
 * commands, options, their values, and the names of resources on the server.
 */
import { Argument } from 'commander';
import type { Command } from 'commander';
import { methods } from './api-command.ts';
import { optionOf } from './body.ts';
import { contextsFile, readContexts, targetOf } from './contexts.ts';
import { createApi, isPaged, withQuery } from './http.ts';
import type { Io } from './io.ts';
import { createNames, referenceOf } from './names.ts';
import { formats } from './output.ts';
import { choicesOf, operandNames, operationById, operationOf, propertiesOf, scopeNames, table } from './table.ts';
import type { Operation } from './table.ts';
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
  const operation = namedOperation(before);
  if (!operation) return commandWords(before, current, io);
  const last = before.at(-1)!;
  if (takesValue(operation, last)) return optionValues(operation, last, io);
  if (current.startsWith('-')) return optionsOf(operation);
  return operandNamesOnServer(operation, before.slice(operation.command.length), io);
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

function namedOperation(words: string[]): Operation | undefined {
  for (let length = Math.min(words.length, 3); length > 1; length--) {
    const found = operationOf(words.slice(0, length));
    if (found) return found;
  }
  return undefined;
}

function commandWords(before: string[], current: string, io: Io): string[] {
  const [first, second] = before;
  if (first === 'context') {
    if (before.length === 1) return ['add', 'use', 'list', 'remove'];
    return second === 'use' || second === 'remove' ? Object.keys(readContexts(contextsFile(io.env)).contexts) : [];
  }
  if (first === 'completion') return before.length === 1 ? [...shells] : [];
  if (first === 'api') {
    if (before.length === 1) return methods;
    return before.length === 2 ? table.operations.map(({ path }) => path) : [];
  }
  if (first === 'apply' || first === 'diff') return current.startsWith('-') ? ['--file', '--prune', '--output'] : [];
  return table.operations
    .filter(({ command, hidden }) => !hidden && before.every((word, i) => command[i] === word))
    .map(({ command }) => command[before.length] ?? '');
}

const common = ['--output', '--columns', '--quiet', '--context', '--help'];

function optionsOf({ path, query = {}, body, result }: Operation): string[] {
  const fields = body ? [...propertiesOf(body).keys()].map((name) => optionOf(name)) : [];
  const filters = Object.keys(query).map((name) => optionOf(name, 'query'));
  const scope = scopeNames(path).map((name) => `--${name.replace('_id', '')}`);
  return [
    ...filters,
    ...fields,
    ...(body ? ['--body'] : []),
    ...scope,
    ...common,
    ...(result === 'tasks' ? ['--no-wait', '--timeout'] : []),
  ];
}

/** Whether a word is an option, and the next one its value. */
function takesValue(operation: Operation, word: string): boolean {
  const flags = new Set(['--quiet', '--help', '--no-wait']);
  return !flags.has(word) && (word === '-o' || optionsOf(operation).includes(word));
}

async function optionValues(operation: Operation, option: string, io: Io): Promise<string[]> {
  if (option === '--output' || option === '-o') return [...formats];
  if (option === '--columns') return operation.fields ?? [];
  if (option === '--context') return Object.keys(readContexts(contextsFile(io.env)).contexts);
  if (option === '--project' || option === '--region') return namesOf(`${option.slice(2)}_id`, {}, io);
  const name = option.replace(/^--(field-|query-)?/, '').replaceAll('-', '_');
  const schema = operation.query?.[name] ?? (operation.body && propertiesOf(operation.body).get(name)?.schema);
  const choices = schema && choicesOf(schema);
  if (choices) return choices.map(String);
  const parameter = referenceOf(name);
  return parameter === undefined ? [] : namesOf(parameter, {}, io);
}

/** `given` are the words after the command: operands, and options with their values. */
async function operandNamesOnServer(operation: Operation, given: string[], io: Io): Promise<string[]> {
  const operands = given.filter((word, i) => !word.startsWith('-') && !given[i - 1]?.startsWith('-'));
  const names = operandNames(operation.path);
  const next = names[operands.length];
  if (next === undefined) return [];
  return namesOf(next, Object.fromEntries(operands.map((value, i) => [names[i]!, value])), io);
}

async function namesOf(parameter: string, values: Record<string, string>, io: Io): Promise<string[]> {
  const list = listOf(parameter);
  if (!list) return [];
  const api = createApi(targetOf({}, io.env), longestWaitMs);
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
