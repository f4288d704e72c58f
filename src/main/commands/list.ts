/**
 * All commands, in the order of the help. The modules of the server and of the database are imported when a command runs, so
 * that help and usage errors are immediate.
 */
import { isServerProcess } from '../../platform/server-processes.ts';
import type { Settings } from '../settings.ts';
import { command, type Command } from '../command-line.ts';
import type { Roles } from '../open-services.ts';
import { auditCommands } from './audit.ts';
import { backupCommands } from './backups.ts';
import { clientCommands } from './clients.ts';
import { hostCommands } from './hosts.ts';
import { quotaCommands } from './quotas.ts';
import { secretCommands } from './secrets.ts';
import { tokenCommands } from './tokens.ts';
import { UsageError } from '../usage-error.ts';
import { idNumber, print, withServices } from './with-services.ts';

async function run(settings: Settings, roles: Roles): Promise<void> {
  if (isServerProcess) return (await import('../api-process.ts')).runApiProcess(settings);
  return (await import('../run.ts')).run(settings, roles);
}

export const commands: Command[] = [
  command({
    name: 'start',
    summary: 'Run the API server and workers for all regions in one process (npm start)',
    run: (settings) => run(settings, { serve: true, work: 'all' }),
  }),
  command({
    name: 'serve',
    summary: 'Run the API server alone',
    run: (settings) => run(settings, { serve: true, work: [] }),
  }),
  command({
    name: 'worker',
    summary: 'Run the worker of a region',
    options: {
      region: {
        type: 'string',
        multiple: true,
        required: true,
        value: 'N',
        description: 'a region; repeat for more',
      },
    },
    run: async (settings, { region = [] }) =>
      run(settings, { serve: false, work: [...new Set(region.map((text) => idNumber('--region', text)))] }),
  }),
  command({
    name: 'host',
    summary: 'Run the agent of this host in a region of several hosts',
    options: {
      region: { type: 'string', required: true, value: 'N', description: 'the region' },
    },
    run: async (settings, { region = '' }) =>
      run(settings, { serve: false, work: [idNumber('--region', region)], agent: true }),
  }),
  command({
    name: 'migrate',
    summary: 'Migrate the database to the schema of this version, or back to that of a backup',
    options: {
      'rollback-from': { type: 'string', value: 'FILE', description: 'restore the database from this backup' },
      force: {
        type: 'boolean',
        default: false,
        description: 'also if running processes of an older version would fail',
      },
    },
    async run(settings, { 'rollback-from': file, force }) {
      if (file !== undefined && force) throw new UsageError('--rollback-from conflicts with --force; use only one');
      if (file !== undefined) return (await import('./database.ts')).rollBack(settings, file);
      return withServices(settings, async () => print('The database is up to date.'), { force });
    },
  }),
  command({
    name: 'database move',
    summary: 'Copy the database to an empty one on another server',
    options: {
      to: {
        type: 'string',
        value: 'FILE',
        required: true,
        description: 'a file whose first line is the new DATABASE_URL',
      },
    },
    run: async (settings, { to = '' }) => (await import('./database.ts')).moveDatabase(settings, to),
  }),
  ...tokenCommands,
  ...clientCommands,
  ...hostCommands,
  ...quotaCommands,
  ...auditCommands,
  ...secretCommands,
  ...backupCommands,
  command({
    name: 'doctor',
    summary: 'Check this installation, and print the commands that fix failed checks',
    run: async (settings) => (await import('../doctor.ts')).doctor(settings),
  }),
];
