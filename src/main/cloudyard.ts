/**
 * The `cloudyard` command. It reads the environment, and no other module does. The settings load all drivers, so they are
 * loaded after the command line is parsed.
 */
import firstWords from '../client/first-words.json' with { type: 'json' };
import { forbidCoreDumps } from '../platform/child-process.ts';
import { suggestion } from './closest.ts';
import { helpOf, parseCommandLine } from './command-line.ts';
import { commands } from './commands/list.ts';
import { print } from './commands/with-services.ts';
import { messageOf } from './error-message.ts';
import { ConfigurationFileError } from '../platform/configuration-file-error.ts';
import { placesOf } from '../platform/program-files.ts';
import { SettingsError } from '../platform/setting-reader.ts';
import { isServerProcess } from '../platform/server-processes.ts';
import { UsageError } from './usage-error.ts';
import { version } from './version.ts';

async function main(args: string[]): Promise<void> {
  const [first = 'help', ...rest] = args;
  const isHelpOfClient = first === 'help' && firstWords.includes(rest[0] ?? '');
  if (isHelpOfClient) return runClientCommand([...rest, '--help']);
  if (firstWords.includes(first)) return runClientCommand(args);
  if (first === '--version') return print(`cloudyard ${version}`);
  if (first === 'help') return print(isSetting(rest[0]) ? await helpOfSettings(rest[0]) : await help(rest));
  if (args.includes('--help') || args.includes('-h')) return print(await help(args));
  const invocation = parseCommandLine(commands, args);
  const { readSettings, settingNames, unknownSettings } = await import('./settings.ts');
  const unknown = isServerProcess ? [] : unknownSettings(process.env);
  for (const name of unknown) warn(`unknown setting ${name}${suggestion(name, settingNames)}`);
  const settings = readSettings(process.env, placesOf(process.env), process.stdout.isTTY === true);
  (await import('./package-settings.ts')).requirePackageSettings(process.env, settings);
  forbidCoreDumps();
  await invocation.run(settings);
}

/** The client prints its own errors. */
async function runClientCommand(args: string[]): Promise<void> {
  const code = await (await import('../client/main.ts')).runClient(args);
  if (code !== 0) process.exit(code);
}

async function help(args: string[]): Promise<string> {
  const text = helpOf(commands, args);
  if (args.some((arg) => !arg.startsWith('-'))) return text;
  const more = `More help:
  cloudyard COMMAND --help  Options of a command
  cloudyard help settings   Environment variables that configure servers and workers
  cloudyard help VARIABLE   One of them, such as CLOUDYARD_PORT
  cloudyard --version       Version`;
  const { clientHelp } = await import('../client/help.ts');
  return `${text}\n\n${clientHelp()}\n\n${more}`;
}

function isSetting(topic: string | undefined): topic is string {
  return topic === 'settings' || /^(CLOUDYARD_|DATABASE_URL$)/.test(topic ?? '');
}

async function helpOfSettings(topic: string): Promise<string> {
  const { settingsHelp } = await import('./setting-descriptions.ts');
  const text = settingsHelp(topic === 'settings' ? undefined : topic);
  if (text !== undefined) return text;
  const { settingNames } = await import('./settings.ts');
  throw new UsageError(`${topic} is not a setting${suggestion(topic, settingNames)}`);
}

function warn(text: string): void {
  process.stderr.write(`cloudyard: ${text}\n`);
}

/** Prints the message; with CLOUDYARD_LOG_LEVEL=debug, the stack. */
function report(error: unknown): void {
  if (error instanceof UsageError) return warn(error.usage ? `${error.message}\n${error.usage}` : error.message);
  if (!(error instanceof Error)) return warn(String(error));
  warn((process.env.CLOUDYARD_LOG_LEVEL === 'debug' && error.stack) || messageOf(error));
}

// The reader of a pipe may stop early (`quota list | head`). The command ends as if all had been read. After another error, such
// as a full disk, a command ends with 1; a server continues, and also ends with 1.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || stream === process.stderr) return;
    process.exitCode = 1;
    warn(`cannot write to standard output: ${error.message}`);
  });
}

const permanentErrors = [UsageError, SettingsError, ConfigurationFileError];

main(process.argv.slice(2)).then(
  // After the event of a write that failed.
  () => setImmediate(() => process.exit()),
  (error: unknown) => {
    report(error);
    // 2: no repetition helps. systemd does not start such a service again (RestartPreventExitStatus).
    process.exit(permanentErrors.some((kind) => error instanceof kind) ? 2 : 1);
  },
);
