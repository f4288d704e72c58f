/** `cloudyard context add|use|list|remove`. */
import { Command } from 'commander';
import { textOf } from './body.ts';
import {
  checkedUrl,
  type Context,
  contextsFile,
  readContexts,
  requireContextName,
  saveContext,
  writeContexts,
} from './contexts.ts';
import { CommandError, exitCodes, usageError } from './errors.ts';
import type { Io } from './io.ts';
import { formatted } from './output.ts';

interface AddOptions {
  url: string;
  token?: string;
  tokenFile?: string;
  project?: string;
  region?: string;
}

export function addContextCommands(program: Command, io: Io): void {
  const group = program.command('context').summary('Servers, tokens and default projects');
  const file = () => contextsFile(io.env);

  group
    .command('add')
    .summary('Add a context, or replace it, and use it')
    .description('Add a context, or replace it, and use it. The file is readable by its owner only.')
    .argument('<name>', 'name of the context')
    .requiredOption('--url <URL>', 'URL of the server')
    .option('--token <TOKEN>', 'API token; other users can see it while the command runs, --token-file is safer')
    .option('--token-file <FILE>', 'file with the API token, or - for standard input')
    .option('--project <PROJECT>', 'default project, ID or name')
    .option('--region <REGION>', 'default region, ID or name')
    .action(async (name: string, options: AddOptions) => {
      requireContextName(name);
      const token = await tokenOf(options, io);
      const { project, region } = options;
      saveContext(file(), name, { url: checkedUrl(options.url), token, project, region });
    });

  group
    .command('use')
    .summary('Make a context the current one')
    .argument('<name>', 'name of the context')
    .action((name: string) => {
      const known = readContexts(file());
      requireContext(known.contexts, name);
      writeContexts(file(), { ...known, current: name });
    });

  group
    .command('list')
    .summary('List contexts, without their tokens')
    .option('-o, --output <FORMAT>', 'format of the result', 'table')
    .option('-q, --quiet', 'print only names')
    .action(async (options: { output: string; quiet?: boolean }) => {
      const { current, contexts } = readContexts(file());
      const rows = Object.entries(contexts).map(([name, { url, project = null, region = null }]) => ({
        ...{ name, current: name === current, url, project, region },
      }));
      const columns = options.output === 'table' ? { columns: 'name,current,url,project,region' } : {};
      io.out(await formatted(rows, [], { ...options, ...columns }));
    });

  group
    .command('remove')
    .summary('Remove a context')
    .argument('<name>', 'name of the context')
    .action((name: string) => {
      const { current, contexts } = readContexts(file());
      requireContext(contexts, name);
      const { [name]: _, ...others } = contexts;
      writeContexts(file(), { ...(current !== name && current !== undefined && { current }), contexts: others });
    });
}

function requireContext(contexts: Record<string, Context>, name: string): void {
  if (!Object.hasOwn(contexts, name)) throw new CommandError(`context ${name} not found`, exitCodes.notFound);
}

async function tokenOf({ token, tokenFile }: AddOptions, io: Io): Promise<string | undefined> {
  if (token !== undefined && tokenFile !== undefined) throw usageError('use --token or --token-file, not both');
  if (tokenFile === undefined) return token;
  const text = await textOf('--token-file', tokenFile === '-' ? '-' : `@${tokenFile}`, io);
  if (text.trim() === '') throw usageError('--token-file: the token is empty');
  return text.trim();
}
