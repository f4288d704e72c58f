/**
 * Runs a script under the pinned Node (npm package `node`), and first installs dependencies that are missing or older than
 * package-lock.json, so that a fresh clone needs one command. Plain JavaScript for Node 20; imports no dependency. An
 * installed package has its dependencies and runs under the Node that starts it.
 *
 * Invariant: one `npm ci` at a time (the lock .installing). It deletes node_modules, so a second one would break the first.
 *
 * Failure modes: npm's own output and exit code. An install that was killed is detected and repeated.
 */
import { spawn } from 'node:child_process';
import { existsSync, lstatSync, statSync } from 'node:fs';
import module from 'node:module';
import { constants, homedir } from 'node:os';
import { isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { modified, withLock } from './directory-lock.mjs';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const isCheckout = existsSync(join(root, 'src'));

/** Node does not strip types below node_modules, so an installed package contains dist/ in place of src/. */
export function programFile(path) {
  return isCheckout ? join(root, 'src', path) : join(root, 'dist', path.replace(/\.ts$/, '.js'));
}

const pinnedNode = join(root, 'node_modules', 'node', 'bin', 'node');
/** npm writes this file at the end of an install. */
const hiddenLock = join(root, 'node_modules', '.package-lock.json');
const lock = join(root, '.installing');
/** Compiled code of all modules (9 MB). `npm ci` removes that of a checkout. */
const compileCache = isCheckout
  ? join(root, 'node_modules', '.cache', 'node-compile')
  : join(userCache(), 'cloudyard', 'node-compile');
const oldestNode = 24;
/** Whether the Node of this process can run everything. */
const isNewEnough = Number.parseInt(process.versions.node, 10) >= oldestNode;
/** For scripts that load sources. */
export const preload = pathToFileURL(join(root, 'bin', 'module-resolution.mjs')).href;

export async function ensureInstalled() {
  if (!isCheckout) {
    if (nodeToUse()) return;
    throw new Error(`Node ${oldestNode} or newer is required; this is Node ${process.versions.node}`);
  }
  if (!installReason()) return;
  await withLock(lock, reportWait, async () => {
    // Another process may have installed while this one waited.
    const reason = installReason();
    if (!reason) return;
    console.error(`cloudyard: ${reason}, installing`);
    if (!dependenciesAreCurrent()) {
      // The pinned Node is a development dependency, which NODE_ENV=production omits. The warnings are about the machine's
      // Node, which is older than packages require but does not run them.
      await npm('ci', '--include=dev', '--loglevel=error');
    }
    // An install script downloads its binary; ignore-scripts skips it.
    if (!nodeToUse()) await npm('rebuild', 'node', '--ignore-scripts=false', '--loglevel=error');
    if (!nodeToUse()) throw new Error(`npm did not install ${pinnedNode}`);
  });
}

function reportWait() {
  console.error('cloudyard: waiting for another process to install the dependencies');
}

/**
 * Does not return: this process exits with the exit code of the script. The working directory is unchanged. `cache` is the folder
 * of compiled code.
 */
export async function runPinned(script, args, { flags, environment, cache = compileCache, stdio } = {}) {
  const all = { ...environment, ...process.env, ...cacheSetting(cache) };
  process.exit(await runNode(script, args, { flags, environment: all, stdio }));
}

/** Resolves with the exit code of the script. */
export function runNode(script, args, { flags = [], environment = process.env, stdio = 'inherit' } = {}) {
  return run(nodeToUse(), [...flags, resolve(script), ...args], { stdio, env: environment });
}

const parentPollMs = 1000;
/** Read at once: the installation of dependencies takes minutes. */
const parentAtStart = process.ppid;

/**
 * Ends this process when npm, which started it with a script of this package, was killed: npm then forwards no signal. Other
 * parents, such as a shell, may end before the programs that they start.
 */
export function endWithNpm() {
  if (process.env.npm_package_json !== join(root, 'package.json')) return;
  const end = () => {
    if (process.ppid !== parentAtStart) process.exit(1);
  };
  setInterval(end, parentPollMs).unref();
}

/** XDG Base Directory Specification. */
function userCache() {
  const given = process.env.XDG_CACHE_HOME ?? '';
  return isAbsolute(given) ? given : join(homedir(), '.cache');
}

/** Runs a command of the client, in this process if its Node is new enough: a second Node would double the start-up. */
export async function runClient(args) {
  const script = programFile('client/start.ts');
  if (!isNewEnough) await runPinned(script, args);
  const { NODE_COMPILE_CACHE: folder } = cacheSetting(compileCache);
  // Without a folder, Node would use one in /tmp that every account can create.
  if (folder !== undefined) module.enableCompileCache(folder);
  await import(pathToFileURL(script).href);
}

/** Only the owner of a folder writes there: files of root in node_modules would make the owner's next `npm ci` fail. */
export const isOwn = (folder) => statSync(folder).uid === process.getuid?.();

function cacheSetting(folder) {
  const isAllowed = !isCheckout || isOwn(join(root, 'node_modules'));
  return isAllowed && process.env.NODE_COMPILE_CACHE === undefined ? { NODE_COMPILE_CACHE: folder } : {};
}

function installReason() {
  // A symlink belongs to another checkout; an install would replace its contents.
  if (lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) return null;
  if (!existsSync(hiddenLock)) return 'dependencies are not installed';
  if (!nodeToUse()) return 'the pinned Node is not installed';
  return dependenciesAreCurrent() ? null : 'package-lock.json is newer than node_modules';
}

function dependenciesAreCurrent() {
  // Development dependencies are missing, and the machine's Node is too old.
  if (!nodeToUse() && !existsSync(join(root, 'node_modules', 'node', 'package.json'))) return false;
  return (modified(hiddenLock) ?? -1) >= (modified(join(root, 'package-lock.json')) ?? 0);
}

/** Without development dependencies, the Node of this process is used if it is new enough. */
function nodeToUse() {
  if (existsSync(pinnedNode)) return pinnedNode;
  return isNewEnough ? process.execPath : null;
}

async function npm(...args) {
  const [file, ...before] = process.env.npm_execpath?.endsWith('npm-cli.js')
    ? [process.execPath, process.env.npm_execpath]
    : ['npm'];
  // Standard output belongs to the script, so npm writes to standard error.
  const code = await run(file, [...before, ...args], { cwd: root, env: withoutSettings(), stdio: ['ignore', 2, 2] });
  if (code !== 0) throw Object.assign(new Error(`npm ${args.join(' ')} failed`), { exitCode: code });
}

/** npm runs package scripts (under root, as the owner of the checkout); they must not see the settings of Cloudyard. */
function withoutSettings() {
  const isSetting = (name) => /^(CLOUDYARD_|DATABASE_URL$|PG[A-Z]+$)/.test(name);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isSetting(name)));
}

/**
 * Resolves with the exit code, in the form of a shell. Forwards SIGTERM and SIGHUP. On a terminal Ctrl-C reaches the child
 * directly, and forwarding would deliver it twice; without a terminal SIGINT is forwarded as well.
 */
function run(file, args, options) {
  return new Promise((done, fail) => {
    const atTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
    const pass = (signal) => child.kill(signal);
    const passInterrupt = atTerminal ? () => {} : pass;
    // Before the start, which takes time on a busy machine: a signal would end this process alone.
    process.on('SIGTERM', pass).on('SIGHUP', pass).on('SIGINT', passInterrupt);
    const child = spawn(file, args, options);
    child.once('error', (err) => fail(new Error(`cannot run ${file}: ${err.message}`)));
    child.once('exit', (code, signal) => {
      process.off('SIGTERM', pass).off('SIGHUP', pass).off('SIGINT', passInterrupt);
      done(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** Runs the main function of a script; prints an error in one line, without the stack. */
export async function main(work) {
  try {
    await work();
  } catch (err) {
    console.error(`cloudyard: ${err.message}`);
    process.exit(err.exitCode ?? 1);
  }
}
