/** Options that commands share. */
import { type Command, Option } from 'commander';
import { formats } from './output.ts';
import { scopeNames } from './table.ts';
import { defaultTimeout } from './waiting.ts';

export function addCommonOptions(command: Command, path: string): Command {
  command
    .addOption(new Option('-o, --output <FORMAT>', 'format of the result').choices(formats).default('table'))
    .option('--columns <NAMES>', 'columns of the table, or fields, separated by commas')
    .option('-q, --quiet', 'print only IDs, or the values of --columns, and no progress');
  return addTargetOptions(command, path);
}

export function addTargetOptions(command: Command, path = '{project_id}/{region_id}'): Command {
  const scope = scopeNames(path);
  if (scope.includes('project_id')) command.option('--project <PROJECT>', 'ID or name of the project');
  if (scope.includes('region_id')) command.option('--region <REGION>', 'ID or name of the region');
  return command.option('--context <NAME>', 'context to use instead of the current one');
}

/** For options that can be repeated. */
export function collect(text: string, before: string[] = []): string[] {
  return [...before, text];
}

export function addWaitOptions(command: Command): Command {
  return command
    .option('--wait', 'wait for the tasks', true)
    .option('--no-wait', 'print the IDs of the tasks and do not wait for them')
    .option('--timeout <SECONDS>', 'longest wait', String(defaultTimeout));
}
