/**
 * Runs a script under the pinned Node (npm package `node`), installing the dependencies first where they are missing or
 * older than package-lock.json: a fresh clone needs one command. Plain JavaScript for Node 20, imports nothing installed.
 *
 * Invariant: one `npm ci` at a time. It deletes node_modules, so a second one would break the first; the lock is the
 * directory .installing, whose time the holder renews each second, and which is stale when it has not for ten.
 *
 * How it fails: with npm's own output and exit code. A killed install is noticed and repeated.
 */
import { spawn } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, renameSync, rmSync, statSync, utimesSync } from 'node:fs';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

const pinnedNode = join(root, 'node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
/** Written by npm when all is installed. */
const hiddenLock = join(root, 'node_modules', '.package-lock.json');
const lock = join(root, '.installing');
const LOCK_STALE_MS = 10_000;

export async function ensureInstalled() {
  if (!whyInstall()) return;
  await locked(async () => {
    // Another process may have installed while this one waited.
    const why = whyInstall();
    if (!why) return;
    console.error(`cloudyard: ${why}, installing`);
    if (!dependenciesAreCurrent()) {
      // The pinned Node is a development dependency, which NODE_ENV=production leaves out. The warnings are that packages
      // want a newer Node than the machine's, which does not run them.
      await npm('ci', '--include=dev', '--loglevel=error');
    }
    // Its binary comes from an install script, which ignore-scripts leaves out.
    if (!nodeToUse()) await npm('rebuild', 'node', '--ignore-scripts=false', '--loglevel=error');
    if (!nodeToUse()) throw new Error(`npm did not install ${pinnedNode}`);
  });
}

/** Does not return: ends this process as the script ends. The script's working directory is the caller's. */
export async function runPinned(script, args, nodeFlags = []) {
  process.exit(await run(nodeToUse(), [...nodeFlags, resolve(script), ...args]));
}

function whyInstall() {
  // Somebody else's: to install into it would take it from them.
  if (lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) return null;
  if (!existsSync(hiddenLock)) return 'dependencies are not installed';
  if (!nodeToUse()) return 'the pinned Node is not installed';
  return dependenciesAreCurrent() ? null : 'package-lock.json is newer than node_modules';
}

function dependenciesAreCurrent() {
  // An install without development dependencies, on a machine whose Node will not do.
  if (!nodeToUse() && !existsSync(join(root, 'node_modules', 'node', 'package.json'))) return false;
  return (modified(hiddenLock) ?? -1) >= (modified(join(root, 'package-lock.json')) ?? 0);
}

/** Our own will do where only production dependencies are installed. */
function nodeToUse() {
  if (existsSync(pinnedNode)) return pinnedNode;
  return Number.parseInt(process.versions.node, 10) >= 24 ? process.execPath : null;
}

async function npm(...args) {
  const [file, ...before] = process.env.npm_execpath?.endsWith('npm-cli.js')
    ? [process.execPath, process.env.npm_execpath]
    : ['npm'];
  // Standard output is the script's.
  const code = await run(file, [...before, ...args], { cwd: root, env: withoutSettings(), stdio: ['ignore', 2, 2] });
  if (code !== 0) throw Object.assign(new Error(`npm ${args.join(' ')} failed`), { exitCode: code });
}

/** npm runs scripts of packages, and under root as the owner of the checkout: neither needs the settings of Cloudyard. */
function withoutSettings() {
  const isSetting = (name) => /^(CLOUDYARD_|DATABASE_URL$|PG[A-Z]+$)/.test(name);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isSetting(name)));
}

async function locked(work) {
  let said = false;
  while (!takeLock()) {
    if (!said) console.error('cloudyard: waiting for another process that installs the dependencies');
    said = true;
    await sleep(200);
  }
  const renewal = setInterval(() => {
    const now = new Date();
    utimesSync(lock, now, now);
  }, 1000);
  try {
    await work();
  } finally {
    clearInterval(renewal);
    rmSync(lock, { recursive: true, force: true });
  }
}

function takeLock() {
  try {
    mkdirSync(lock);
    return true;
  } catch (err) {
    if (err.code !== 'EEXIST') throw err;
  }
  const renewed = modified(lock);
  if (renewed === null || Date.now() - renewed < LOCK_STALE_MS) return false;
  try {
    // Of several that find it stale, one can rename it.
    const stale = `${lock}.${process.pid}`;
    renameSync(lock, stale);
    rmSync(stale, { recursive: true, force: true });
  } catch {
    // Another did.
  }
  return false;
}

function modified(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? null;
}

/**
 * Resolves with the exit code, as a shell counts it. SIGTERM and SIGHUP go to this process alone and are passed on.
 * Ctrl-C reaches the child by itself, and twice may mean something else than once; without a terminal SIGINT is passed on, too.
 */
function run(file, args, options = { stdio: 'inherit' }) {
  return new Promise((done, fail) => {
    const child = spawn(file, args, options);
    const atTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
    const pass = (signal) => child.kill(signal);
    const passInterrupt = atTerminal ? () => {} : pass;
    process.on('SIGTERM', pass).on('SIGHUP', pass).on('SIGINT', passInterrupt);
    child.once('error', (err) => fail(new Error(`cannot run ${file}: ${err.message}`)));
    child.once('exit', (code, signal) => {
      process.off('SIGTERM', pass).off('SIGHUP', pass).off('SIGINT', passInterrupt);
      done(code ?? 128 + constants.signals[signal]);
    });
  });
}

/** For the two scripts: says what failed in a line, without a stack. */
export async function main(work) {
  try {
    await work();
  } catch (err) {
    console.error(`cloudyard: ${err.message}`);
    process.exit(err.exitCode ?? 1);
  }
}
