import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { watchHealth } from './daemon-health.ts';
import { backoffAfter, type Daemon, type DaemonOptions, superviseDaemon } from './daemon.ts';
import { findByCommandLine, liveProcess, readPidFile, startedWith } from './running-processes.ts';

vi.setConfig({ testTimeout: 30_000 });

/** Writes its pid to `ready` when up, and notes each start and SIGTERM in `events`. */
const PROGRAM = `
import { appendFileSync, writeFileSync } from 'node:fs';
const [dir, mode] = process.argv.slice(2);
console.log('program speaks');
if (mode === 'fails') { console.error('no such thing: frobnicator'); process.exit(3); }
process.on('SIGTERM', () => { if (mode !== 'stubborn') { appendFileSync(dir + '/events', 'term\\n'); process.exit(0); } });
setInterval(() => {}, 1000);
appendFileSync(dir + '/events', 'start\\n');
if (mode !== 'silent') writeFileSync(dir + '/ready', String(process.pid));
`;

let dir: string;
let daemons: Daemon[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'daemon-test-'));
  daemons = [];
  writeFileSync(join(dir, 'program.mjs'), PROGRAM);
});

afterEach(async () => {
  await Promise.all(daemons.map((daemon) => daemon.stop()));
  rmSync(dir, { recursive: true });
});

function options(mode = 'plain', more: Partial<DaemonOptions> = {}): DaemonOptions {
  return {
    name: 'program',
    command: { file: process.execPath, args: [join(dir, 'program.mjs'), dir, mode] },
    pidFile: join(dir, 'program.pid'),
    matches: (commandLine) => commandLine.includes(join(dir, 'program.mjs')),
    probe: async () => {
      const ready = Number(readFileSync(join(dir, 'ready'), 'utf8'));
      if (!liveProcess(ready)) throw new Error('not ready');
    },
    startTimeout: 20,
    logFile: join(dir, 'program.log'),
    stopSignal: 'SIGTERM',
    log: pino({ level: 'silent' }),
    ...more,
  };
}

async function supervise(given: DaemonOptions): Promise<Daemon> {
  const daemon = await superviseDaemon(given);
  daemons.push(daemon);
  return daemon;
}

async function until(condition: () => boolean, seconds = 20): Promise<void> {
  const deadline = Date.now() + seconds * 1000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`not within ${seconds} s: ${condition}`);
    await sleep(20);
  }
}

const pidInFile = () => Number(readFileSync(join(dir, 'program.pid'), 'utf8'));
const events = () => readFileSync(join(dir, 'events'), 'utf8').trim().split('\n');

test('a released daemon whose pid file was removed is adopted, and stopped', async () => {
  const first = await supervise(options());
  const pid = first.pid() as number;
  await first.release();
  rmSync(join(dir, 'program.pid'));
  const second = await supervise(options());
  expect([second.pid(), pidInFile(), events()]).toEqual([pid, pid, ['start']]);
  await second.stop();
  expect(liveProcess(pid)).toBeNull();
});

test('a process of another account or in another mount namespace is not taken for a daemon without a pid file', async () => {
  const lookalike = spawn('unshare', ['--mount', process.execPath, join(dir, 'program.mjs'), dir, 'plain']);
  try {
    await until(() => existsSync(join(dir, 'ready')));
    rmSync(join(dir, 'ready'));
    const matches = (commandLine: string) => commandLine.includes(join(dir, 'program.mjs'));
    expect(findByCommandLine(matches, [process.getuid!()])).toBeNull();
    const daemon = await supervise(options());
    expect(findByCommandLine(matches, [process.getuid!()])).toBe(daemon.pid());
    expect(findByCommandLine(matches, [process.getuid!() + 1])).toBeNull();
    expect(daemon.pid()).not.toBe(lookalike.pid);
  } finally {
    lookalike.kill('SIGKILL');
  }
});

test('a daemon whose socket was removed is started again', async () => {
  const daemon = await supervise(options('plain', { socket: join(dir, 'ready') }));
  const pid = daemon.pid() as number;
  rmSync(join(dir, 'ready'));
  await until(() => events().length === 3);
  expect([liveProcess(pid), events()]).toEqual([null, ['start', 'term', 'start']]);
});

test('a daemon that does not respond is reported as silent until it responds again', async () => {
  const over = new AbortController();
  let responds = true;
  const probe = async () => {
    if (!responds) throw new Error('not ready');
  };
  const watched = { name: 'program', probe, log: pino({ level: 'silent' }) };
  const { isSilent } = watchHealth(watched, over.signal, 10);
  await sleep(100);
  expect(isSilent()).toBe(false);
  responds = false;
  await until(isSilent);
  responds = true;
  await until(() => !isSilent());
  over.abort();
});

test('a clock that is set forward neither ends a start nor kills a process that is stopping', async () => {
  const hours = vi.spyOn(Date, 'now');
  let now = 0;
  hours.mockImplementation(() => (now += 3_600_000));
  try {
    const daemon = await supervise(options());
    await daemon.stop();
    expect(events()).toEqual(['start', 'term']);
  } finally {
    hours.mockRestore();
  }
});

test('a daemon starts in its own process group with a pid file and a log, and stop terminates it', async () => {
  const daemon = await supervise(options());
  const pid = daemon.pid() as number;
  expect(pidInFile()).toBe(pid);
  expect(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[2]).toBe(String(pid));
  expect(readFileSync(join(dir, 'program.log'), 'utf8')).toContain('program speaks');
  await daemon.stop();
  expect(liveProcess(pid)).toBeNull();
  expect(daemon.pid()).toBeNull();
  expect(existsSync(join(dir, 'program.pid'))).toBe(false);
  expect(events()).toEqual(['start', 'term']);
});

test('a daemon killed with SIGKILL is restarted after its clean-up', async () => {
  const calls: string[] = [];
  const beforeStart = async () => void calls.push('before');
  const daemon = await supervise(options('plain', { beforeStart, onRestart: () => calls.push('restarted') }));
  const first = daemon.pid() as number;
  daemon.signal('SIGKILL');
  await until(() => calls.length === 3);
  expect(calls).toEqual(['before', 'before', 'restarted']);
  expect(daemon.pid()).not.toBe(first);
  expect(pidInFile()).toBe(daemon.pid());
});

test('a process that was started with another variable is not adopted', async () => {
  const withFolder = (folder: string) => {
    const { command } = options();
    return options('plain', {
      command: { ...command, env: { FOLDER: folder } },
      matches: (_commandLine, pid) => startedWith(pid, 'FOLDER', folder),
    });
  };
  const original = await supervise(withFolder('original'));
  const copy = await supervise(withFolder('copy'));
  expect(copy.pid()).not.toBe(original.pid());
  expect(liveProcess(original.pid() as number)).not.toBeNull();
});

test('a failed restart is retried', async () => {
  let refusals = 2;
  let restarted = false;
  const beforeStart = async () => {
    if (existsSync(join(dir, 'ready')) && refusals-- > 0) throw new Error('not now');
  };
  const daemon = await supervise(options('plain', { beforeStart, onRestart: () => (restarted = true) }));
  daemon.signal('SIGKILL');
  await until(() => restarted);
  expect(refusals).toBe(-1);
});

test('a released daemon keeps running, and the next supervisor adopts it and restarts it when it dies', async () => {
  const first = await supervise(options());
  const pid = first.pid();
  await first.release();
  let restarted = false;
  const second = await supervise(options('plain', { onRestart: () => (restarted = true) }));
  expect(second.pid()).toBe(pid);
  expect(events()).toEqual(['start']);
  second.signal('SIGKILL');
  await until(() => restarted);
  expect(second.pid()).not.toBe(pid);
  await second.stop();
  expect(events()).toEqual(['start', 'start', 'term']);
});

test('stop terminates an adopted daemon', async () => {
  await (await supervise(options())).release();
  const second = await supervise(options());
  const pid = second.pid() as number;
  await second.stop();
  expect(liveProcess(pid)).toBeNull();
  expect(events()).toEqual(['start', 'term']);
});

test('a running daemon that does not respond is terminated and replaced', async () => {
  const silent = spawn(process.execPath, [join(dir, 'program.mjs'), dir, 'silent'], { stdio: 'ignore' });
  writeFileSync(join(dir, 'program.pid'), String(silent.pid));
  await until(() => existsSync(join(dir, 'events')));
  const daemon = await supervise(options('plain', { startTimeout: 2 }));
  expect(daemon.pid()).not.toBe(silent.pid);
  expect(liveProcess(silent.pid as number)).toBeNull();
});

test.for<[string, () => string]>([
  ['our own live process', () => String(process.pid)],
  ['a dead process', () => '4194999'],
  ['nothing', () => ''],
])('a stale pid file that names %s is replaced', async ([, content]) => {
  writeFileSync(join(dir, 'program.pid'), content());
  const daemon = await supervise(options());
  expect(pidInFile()).toBe(daemon.pid());
  expect(daemon.pid()).not.toBe(process.pid);
});

test('the pid file of a program that writes it itself is only read', async () => {
  const readPid = () => readPidFile(join(dir, 'ready'));
  const given = options('plain', { pidFile: join(dir, 'ready'), writesPidFile: true });
  const first = await supervise(given);
  expect(readPid()).toBe(first.pid());
  await first.release();
  const second = await supervise(given);
  expect(second.pid()).toBe(first.pid() ?? readPid());
  await second.stop();
  expect(existsSync(join(dir, 'program.pid'))).toBe(false);
});

test('a first start that exits rejects with the end of its log', async () => {
  await expect(superviseDaemon(options('fails'))).rejects.toThrow(/exited \(code 3\)[^]*no such thing: frobnicator/);
  expect(existsSync(join(dir, 'program.pid'))).toBe(false);
});

test('a first start that never responds rejects and leaves no process', async () => {
  let pid = 0;
  const probe = async (): Promise<void> => {
    if (existsSync(join(dir, 'program.pid'))) pid = pidInFile();
    throw new Error('no');
  };
  await expect(superviseDaemon(options('plain', { startTimeout: 1, probe }))).rejects.toThrow('did not respond in 1 s');
  expect(pid).toBeGreaterThan(0);
  expect(liveProcess(pid)).toBeNull();
});

test('a hanging probe counts as no response', async () => {
  const probe = () => new Promise<void>(() => undefined);
  const hangs = options('plain', { startTimeout: 1, probe });
  await expect(superviseDaemon(hangs)).rejects.toThrow('did not respond in 1 s');
});

test('a missing program rejects', async () => {
  const missing = options('plain', { command: { file: join(dir, 'missing'), args: [] } });
  await expect(superviseDaemon(missing)).rejects.toThrow(/program cannot be started: .*ENOENT/);
});

test('stop during a backoff resolves at once and starts nothing', async () => {
  let starts = 0;
  const beforeStart = async (): Promise<void> => {
    if (++starts > 1) throw new Error('not now');
  };
  const daemon = await supervise(options('plain', { beforeStart }));
  daemon.signal('SIGKILL');
  await until(() => starts === 3);
  await daemon.stop();
  expect(daemon.pid()).toBeNull();
  expect(starts).toBe(3);
});

test('the backoff grows while starts fail, and not for a daemon that is killed now and then', () => {
  expect(backoffAfter(6400, 500)).toBe(6400);
  expect(backoffAfter(6400, 15_000)).toBe(200);
});

test('a daemon that ignores its stop signal is killed after the timeout', async () => {
  const daemon = await supervise(options('stubborn', { stopTimeout: 1 }));
  const pid = daemon.pid() as number;
  await daemon.stop();
  expect(liveProcess(pid)).toBeNull();
});

test('a log above 10 MiB is truncated at a start', async () => {
  const logFile = join(dir, 'program.log');
  appendFileSync(logFile, '');
  truncateSync(logFile, 11 * 1024 * 1024);
  await supervise(options());
  expect(statSync(logFile).size).toBeLessThan(1000);
});

test.each([
  ['a symbolic link', symlinkSync],
  ['a hard link', linkSync],
  ['a named pipe', (_file: string, log: string) => execFileSync('mkfifo', [log])],
])('a log that is %s is refused, and the file behind it stays as it is', async (_kind, place) => {
  const other = join(dir, 'other');
  writeFileSync(other, 'text', { mode: 0o644 });
  place(other, join(dir, 'program.log'));
  await expect(supervise(options())).rejects.toThrow('program.log must be a regular file without links; remove it');
  expect([readFileSync(other, 'utf8'), statSync(other).mode & 0o777]).toEqual(['text', 0o644]);
});

test('an adopted daemon is left as it is while this process has no descriptors', async () => {
  const given = options('plain', { pidFile: join(dir, 'ready'), writesPidFile: true });
  const first = await supervise(given);
  const pid = first.pid();
  await first.release();
  const { name, command, pidFile, startTimeout, logFile, stopSignal } = given;
  const data = JSON.stringify({ name, command, pidFile, writesPidFile: true, startTimeout, logFile, stopSignal });
  const script = `
    import { closeSync, openSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { superviseDaemon } from ${JSON.stringify(new URL('daemon.ts', import.meta.url))};
    const log = { info() {}, warn() {}, error() {} };
    const daemon = await superviseDaemon({ ...${data}, matches: () => true, probe: async () => {}, log });
    const descriptors = [];
    try { for (;;) descriptors.push(openSync('/dev/null')); } catch {}
    await sleep(1000);
    for (const each of descriptors) closeSync(each);
    await sleep(1000);
    console.log(daemon.pid());
    await daemon.release();`;
  const node = [process.execPath, '--input-type=module', '--eval', script];
  expect(execFileSync('prlimit', ['--nofile=64:64', ...node], { encoding: 'utf8' })).toBe(`${pid}\n`);
  expect([readPidFile(pidFile), events()]).toEqual([pid, ['start']]);
  await (await supervise(given)).stop();
});

test('the supervision keeps no handle open after release and stop', async () => {
  const before = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const first = await supervise(options());
  await first.release();
  const second = await supervise(options());
  await second.stop();
  const after = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  expect(after).toBeLessThanOrEqual(before);
});
