/** The `cloudyard` command. Reads the environment, and nothing else does. */
import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { forbidCoreDumps } from '../platform/child-process.ts';
import { clientCommand, migrateCommand, quotaCommand, secretsCommand, tokenCommand } from './administer.ts';
import { doctor } from './doctor.ts';
import { root } from './root.ts';
import { run } from './run.ts';
import { readSettings, settingNames, unknownSettings } from './settings.ts';
import type { Settings } from './settings.ts';
import { UsageError } from './usage-error.ts';

const help = `Usage: cloudyard <command>

  start                     the server and workers for all regions, in one process (npm start)
  serve                     the API server alone
  worker --region N         a worker for a region (repeat --region for more)
  migrate                   bring the database to this version's schema
  token create [--client N] [--role admin|member|reader] [--project N ...] [--expires 30d|12h|<date>] [--name TEXT]
  token list
  token revoke ID           every server refuses it within a second
  client create NAME        a client with its first project
  client list
  client weight ID N        the client's share of servers and workers relative to others, 1 to 100 (default 1)
  quota set KIND=LIMIT ... [--client N] [--region N]   LIMIT may be "default"; global kinds take no --region
  quota audit [--repair]    compare the counters with the rows, and set them right; exits 1 where they differ
  secrets rotate-key [--prepare | --use ID]   a new key for everything that is encrypted (docs/operating.md)
  doctor                    what is installed, what is missing, and the line that installs it

Settings are environment variables (docs/operating.md):
${settingNames.map((name) => `  ${name}`).join('\n')}
`;

async function main(args: string[]): Promise<void> {
  const [command = 'help', ...rest] = args;
  if (command === 'help' || args.includes('--help')) {
    process.stdout.write(help);
    return;
  }
  for (const name of unknownSettings(process.env)) {
    process.stderr.write(`cloudyard: ${name} is no setting of Cloudyard\n`);
  }
  const settings = readSettings(process.env, root, process.stdout.isTTY === true);
  forbidCoreDumps();
  await dispatch(command, rest, settings);
}

async function dispatch(command: string, args: string[], settings: Settings): Promise<void> {
  switch (command) {
    case 'start':
      return run(settings, { serve: true, work: 'all' });
    case 'serve':
      return run(settings, { serve: true, work: [] });
    case 'worker':
      return run(settings, { serve: false, work: regionsOf(args) });
    case 'migrate':
      return migrateCommand(settings);
    case 'token':
      return tokenCommand(settings, args);
    case 'client':
      return clientCommand(settings, args);
    case 'quota':
      return quotaCommand(settings, args);
    case 'secrets':
      return secretsCommand(settings, args);
    case 'doctor':
      return doctor(settings);
    default:
      throw new UsageError(`there is no command ${command}`);
  }
}

function regionsOf(args: string[]): number[] {
  const options = { region: { type: 'string', multiple: true } } as const satisfies ParseArgsConfig['options'];
  const regions = parseArgs({ args, options }).values.region ?? [];
  if (regions.length === 0) throw new UsageError('name the region: cloudyard worker --region 1');
  return regions.map((text) => {
    if (!/^\d+$/.test(text)) throw new UsageError(`${text} is not the number of a region`);
    return Number(text);
  });
}

function isUsage(error: unknown): boolean {
  return error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS') === true;
}

/** In words; with CLOUDYARD_LOG_LEVEL=debug, with the stack. */
function tell(error: unknown): void {
  if (isUsage(error)) process.stderr.write(`cloudyard: ${(error as Error).message}\n\n${help}`);
  else if (error instanceof Error && process.env.CLOUDYARD_LOG_LEVEL !== 'debug') {
    process.stderr.write(`cloudyard: ${error.message}\n`);
  } else process.stderr.write(`cloudyard: ${error instanceof Error ? error.stack : String(error)}\n`);
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    tell(error);
    process.exit(isUsage(error) ? 2 : 1);
  },
);
