/**
 * Servers and credentials that the user has named, in `cloudyard/contexts.json` under the XDG configuration directory.
 *
 * Invariant: only the owner can read the file. It is written with mode 0600 under another name and renamed, and a file that
 * others can read is refused.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CommandError, usageError } from './errors.ts';

/** What a context stores. Commands keep properties that they do not know. */
export interface Context {
  url: string;
  token?: string;
  /** Id or name. */
  project?: string;
  region?: string;
}

interface Contexts {
  current?: string;
  contexts: Record<string, Context>;
}

export type Environment = Record<string, string | undefined>;

/** Where a command sends its requests. */
export interface Target {
  url: string;
  token: string | undefined;
  project: string;
  region: string;
}

/** Options that name the target, of all commands that send requests. */
export interface TargetOptions {
  context?: string;
  project?: string;
  region?: string;
}

/** Environment variables of the client; the others are settings of the server. */
export const clientVariables = [
  'CLOUDYARD_URL',
  'CLOUDYARD_TOKEN',
  'CLOUDYARD_CONTEXT',
  'CLOUDYARD_PROJECT',
  'CLOUDYARD_REGION',
];

/** The default project and region. */
export const firstId = '1';

export function contextsFile(env: Environment): string {
  const folder = env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config');
  return join(folder, 'cloudyard', 'contexts.json');
}

export function readContexts(file: string): Contexts {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (!stats) return { contexts: {} };
  if ((stats.mode & 0o077) !== 0) {
    throw new CommandError(`${file} contains tokens and is accessible to other users; change its mode to 600`);
  }
  try {
    const parsed = JSON.parse(readFileSync(file, 'utf8')) as Contexts;
    if (typeof parsed.contexts !== 'object' || parsed.contexts === null) throw new Error('contexts is missing');
    return parsed;
  } catch (error) {
    throw new CommandError(`${file} is not valid: ${(error as Error).message}`, undefined, error);
  }
}

/** Adds a context, or replaces it, and makes it the current one. */
export function saveContext(file: string, name: string, context: Context): void {
  const { contexts } = readContexts(file);
  writeContexts(file, { current: name, contexts: { ...contexts, [name]: context } });
}

export function writeContexts(file: string, contexts: Contexts): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${process.pid}`;
  try {
    writeFileSync(temporary, `${JSON.stringify(contexts, null, 2)}\n`, { mode: 0o600 });
    chmodSync(temporary, 0o600);
    renameSync(temporary, file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}

/**
 * Options take precedence over the environment, and the environment over the context. The option `context` replaces the whole
 * environment: its project and region are those of another server.
 * A token of the environment or of a context is sent only to the URL that it belongs to: CLOUDYARD_URL without
 * CLOUDYARD_TOKEN does not use the token of the context.
 */
export function targetOf(options: TargetOptions, env: Environment): Target {
  const context = chosenContext(options.context, env);
  const given: Environment = options.context === undefined ? env : {};
  const url = given['CLOUDYARD_URL'] || context?.url;
  if (url === undefined) {
    throw usageError('no server: run "cloudyard context add NAME --url URL", or set CLOUDYARD_URL and CLOUDYARD_TOKEN');
  }
  return {
    url: checkedUrl(url),
    token: given['CLOUDYARD_TOKEN'] || context?.token,
    project: options.project || given['CLOUDYARD_PROJECT'] || context?.project || firstId,
    region: options.region || given['CLOUDYARD_REGION'] || context?.region || firstId,
  };
}

function chosenContext(name: string | undefined, env: Environment): Context | undefined {
  if (name === undefined && env['CLOUDYARD_URL']) return undefined;
  const file = contextsFile(env);
  const { current, contexts } = readContexts(file);
  const chosen = name ?? (env['CLOUDYARD_CONTEXT'] || current);
  if (chosen === undefined) return undefined;
  if (!Object.hasOwn(contexts, chosen)) {
    const known = Object.keys(contexts);
    throw usageError(`context ${chosen} not found${known.length > 0 ? `; known: ${known.join(', ')}` : ''}`);
  }
  return contexts[chosen];
}

/** @throws CommandError for what cannot name a context */
export function requireContextName(name: string): void {
  if (!/^[\w.@-]+$/.test(name)) throw usageError('the name may have letters, digits and . _ @ -');
}

/** Without a slash at the end. @throws CommandError for what is not an HTTP URL */
export function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw usageError(`${JSON.stringify(text)} is not a URL that starts with http:// or https://`);
  }
  if (url.username !== '' || url.search !== '' || url.hash !== '') {
    throw usageError('the URL must not contain credentials, a query or a fragment');
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
