/** `cloudyard apply` and `cloudyard diff`: makes the server's resources equal to those that files describe. */
import { Command } from 'commander';
import { type Target, targetOf, type TargetOptions } from '../contexts.ts';
import { CommandError, exitCodes, usageError } from '../errors.ts';
import { type Api, createApi, listAll } from '../http.ts';
import { type Io, readText } from '../io.ts';
import { createNames, type Names, withIds } from '../names.ts';
import { formatted, type OutputOptions, requireColumns } from '../output.ts';
import { addCommonOptions, collect } from '../program-options.ts';
import { secondsOf } from '../resource-command.ts';
import { operandNames, operationById, table } from '../table.ts';
import { createProgress, defaultTimeout, waitForTasks } from '../waiting.ts';
import { accessRules, type Kind, kinds } from './kinds.ts';
import { readManifest, type Resource } from './manifest.ts';
import { type FieldChange, type Live, planUpdate, type Step, surplusOf, type Tag } from './plan.ts';
import { createScopes, type Scope, type Scopes } from './scopes.ts';

interface ApplyOptions extends TargetOptions, OutputOptions {
  file: string[];
  prune?: string;
  timeout?: string;
  exitCode?: boolean;
}

/** What is done to a resource, in this order. */
interface Action {
  action: 'create' | 'update' | 'delete' | 'none';
  kind: Kind;
  name: string;
  target: Target;
  changes: FieldChange[];
  steps: Step[];
  /** Of an existing resource. */
  live?: Live;
}

export function addApplyCommands(program: Command, io: Io): void {
  const apply = program
    .command('apply')
    .summary('Create and update the resources that files describe')
    .description(
      'Create the resources that YAML or JSON files describe, and update those that differ. Each resource is a map with ' +
        '`kind` and the fields of its create command. Fields with IDs also take names.',
    );
  withFiles(apply)
    .option('--timeout <SECONDS>', 'longest wait for the tasks of one change', String(defaultTimeout))
    .action((options: ApplyOptions) => applyFiles(options, io));
  const diff = program.command('diff').summary('Print what apply would change');
  withFiles(diff)
    .option('--exit-code', 'exit with 1 if anything differs')
    .action((options: ApplyOptions) => printDifferences(options, io));
}

function withFiles(command: Command): Command {
  command
    .requiredOption('-f, --file <FILE>', 'YAML or JSON file, or - for standard input; repeat it for more', collect)
    .option('--prune <KEY=VALUE>', 'delete resources with this tag that the files do not describe');
  return addCommonOptions(command, '{project_id}/{region_id}');
}

async function applyFiles(options: ApplyOptions, io: Io): Promise<void> {
  const timeout = secondsOf(options.timeout);
  const actions = await plan(options, io);
  const done: Action[] = [];
  try {
    for (const action of actions) {
      await execute(action, timeout, options, io);
      done.push(action);
    }
  } finally {
    await print(done, options, io, true);
  }
}

async function printDifferences(options: ApplyOptions, io: Io): Promise<void> {
  const actions = (await plan(options, io)).filter(({ action }) => action !== 'none');
  await print(actions, options, io, false);
  if (options.exitCode && actions.length > 0) {
    const subject = actions.length === 1 ? '1 resource differs' : `${actions.length} resources differ`;
    throw new CommandError(subject, exitCodes.failed);
  }
}

const properties = ['action', 'kind', 'name', 'changes'];
const past = { create: 'created', update: 'updated', delete: 'deleted', none: 'unchanged' };

async function print(actions: Action[], options: ApplyOptions, io: Io, isDone: boolean): Promise<void> {
  const rows = actions.map(({ action, kind, name, changes }) => ({
    action: isDone ? past[action] : action,
    kind: kind.name,
    name,
    changes: isData(options) ? changes : changes.map(describe).join('; '),
  }));
  const columns = options.columns ?? (isData(options) ? undefined : properties.join());
  io.out(await formatted(rows, properties, { ...options, ...(columns && { columns }) }));
}

function isData({ output }: ApplyOptions): boolean {
  return output === 'json' || output === 'yaml';
}

function describe({ field, from, to }: FieldChange): string {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
  return `${field}: ${text(from)} -> ${text(to)}`;
}

/** Reads the files and compares. Sends no change. @throws CommandError for all that cannot be applied */
async function plan(options: ApplyOptions, io: Io): Promise<Action[]> {
  const prune = options.prune === undefined ? undefined : tagOf(options.prune);
  requireColumns(options, properties);
  const resources: Resource[] = [];
  for (const file of options.file) {
    resources.push(...readManifest(file === '-' ? 'standard input' : file, await readText(file, io)));
  }
  // With --prune, an empty input would delete everything.
  if (resources.length === 0) throw usageError(`no resources found in ${options.file.join(', ')}`);
  const scopes = createScopes(targetOf(options, io.env), resources);
  const sorted = [...kinds().values()].flatMap((kind) => resources.filter((resource) => resource.kind === kind));
  const errors: string[] = [];
  const placed: Placed[] = [];
  for (const resource of sorted) {
    const project = await withPlace(scopes.project(resource), resource.at('project'), errors);
    const region = await withPlace(scopes.region(resource), resource.at('region'), errors);
    if (project !== undefined && region !== undefined) placed.push({ resource, scope: scopes.of(project, region) });
  }
  refuseDuplicates(placed);
  const actions: Action[] = [];
  for (const each of placed) {
    const action = await planResource(each, placed, errors);
    if (action) actions.push(action);
  }
  if (errors.length > 0) throw new CommandError(errors.join('\n'));
  return prune ? [...actions, ...(await planDeletions(prune, placed, scopes))] : actions;
}

interface Placed {
  resource: Resource;
  scope: Scope;
}

/** Records a name that is unknown or ambiguous as an error of the file, and returns undefined. */
async function withPlace<T>(result: Promise<T>, place: string, errors: string[]): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode === exitCodes.failed) throw error;
    errors.push(`${place}: ${error.message}`);
    return undefined;
  }
}

function tagOf(text: string): Tag {
  const [, key, value] = /^([^=\s]+)=(.+)$/.exec(text) ?? [];
  if (key === undefined) throw usageError(`--prune must be KEY=VALUE, not ${JSON.stringify(text)}`);
  return { key, value: value! };
}

/** Files are checked one by one; this compares them with each other. */
function refuseDuplicates(placed: Placed[]): void {
  const seen = new Map<Scope, Map<string, Resource>>();
  for (const { resource, scope } of placed) {
    const { kind, name, at } = resource;
    const inScope = seen.get(scope) ?? new Map<string, Resource>();
    seen.set(scope, inScope);
    const key = JSON.stringify([kind.name, name]);
    const first = inScope.get(key);
    if (first) throw usageError(`${at('name')}: ${kind.name} ${name} is already described at ${first.at('name')}`);
    inScope.set(key, resource);
  }
}

async function planResource(
  { resource, scope }: Placed,
  placed: Placed[],
  errors: string[],
): Promise<Action | undefined> {
  const { kind, name, spec, at } = resource;
  const { target, api, names, live } = scope;
  const matches = (await live(kind)).filter((other) => other.name === name);
  if (matches.length > 1) {
    errors.push(`${at('name')}: ${matches.length} resources of the kind ${kind.name} have the name ${name}`);
    return undefined;
  }
  const described = placed.filter((other) => other.scope === scope).map((other) => other.resource);
  const known = await withPlace(knownIds(spec, names, described), at(), errors);
  if (known === undefined) return undefined;
  const [found] = matches;
  const common = { kind, name, target };
  if (!found) return { ...common, action: 'create', changes: [], steps: [{ operation: kind.create, body: spec }] };
  const { changes, steps, fixed } = planUpdate(kind, known, await withRules(kind, found, spec, api, names));
  for (const change of fixed)
    errors.push(`${at(change.field)}: ${kind.name} ${name} cannot change ${describe(change)}`);
  return { ...common, action: steps.length > 0 ? 'update' : 'none', changes, steps, live: found };
}

/** Names of resources that the files create are kept: they have no id yet. */
async function knownIds(
  spec: Record<string, unknown>,
  names: Names,
  resources: Resource[],
): Promise<Record<string, unknown>> {
  const tolerant: Names = {
    ...names,
    async id(parameter, value, values) {
      try {
        return await names.id(parameter, value, values);
      } catch (error) {
        const [kind] = operationById(table.lists[parameter]!).command;
        const isDescribed = resources.some((other) => other.kind.name === kind && other.name === value);
        if (isDescribed && (error as CommandError).exitCode === exitCodes.notFound) return value;
        throw error;
      }
    },
  };
  return (await withIds(spec, tolerant)) as Record<string, unknown>;
}

async function withRules(
  kind: Kind,
  found: Live,
  spec: Record<string, unknown>,
  api: Api,
  names: Names,
): Promise<Live> {
  if (kind.name !== accessRules.kind || !(accessRules.field in spec)) return found;
  const path = await names.path(accessRules.list().path, { file_share_id: String(found.id) });
  return { ...found, [accessRules.field]: await listAll(api, path) };
}

/** Dependents first: the reverse order of creation. */
async function planDeletions(tag: Tag, placed: Placed[], scopes: Scopes): Promise<Action[]> {
  scopes.of(await scopes.project({}), await scopes.region({}));
  const actions: Action[] = [];
  for (const scope of scopes.all()) {
    for (const kind of [...kinds().values()].filter(({ tagged }) => tagged).reverse()) {
      const here = placed.filter((each) => each.resource.kind === kind && each.scope === scope);
      const described = new Set(here.map(({ resource }) => resource.name));
      const surplus = surplusOf(await scope.live(kind), described, tag);
      for (const live of surplus) {
        const steps = [{ operation: kind.remove }];
        actions.push({ action: 'delete', kind, name: live.name ?? '', target: scope.target, changes: [], steps, live });
      }
    }
  }
  return actions;
}

async function execute(action: Action, timeout: number, options: ApplyOptions, io: Io): Promise<void> {
  const { kind, name, target, steps, live } = action;
  const api = createApi(target);
  // Names are looked up again: earlier actions have created resources.
  const names = createNames(api);
  for (const { operation, values = {}, body } of steps) {
    try {
      const [own] = operandNames(operation.path);
      const id = own?.endsWith('_name') ? live?.name : live?.id;
      const path = await names.path(operation.path, { ...(own && { [own]: String(id) }), ...values });
      const { body: answer } = await api.send({ method: operation.method, path, body: await withIds(body, names) });
      const tasks = operation.result === 'tasks' ? ((answer?.tasks ?? []) as string[]) : [];
      await waitForTasks(api, tasks, timeout, createProgress(io.err, options.quiet === true));
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      throw new CommandError(`${kind.name} ${name}: ${error.message}`, error.exitCode, error);
    }
  }
}
