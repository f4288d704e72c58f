import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { findServiceManager } from './service-manager.ts';

/** Prints each message. It receives no file descriptor, so the kernel closes that of a barrier, for which the sender waits. */
const receiver = `
import socket, sys
inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
inbox.bind(sys.argv[1])
print('listening', flush=True)
while True: print(inbox.recv(4096).decode(), flush=True)
`;

let folder: string;
let stop: () => void;
let received: string[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cloudyard-notify-'));
  const child = spawn('python3', ['-c', receiver, join(folder, 'socket')], { stdio: ['ignore', 'pipe', 'inherit'] });
  received = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => received.push(...text.trim().split('\n')));
  stop = () => child.kill('SIGKILL');
  await once(child.stdout, 'data');
});
afterEach(() => {
  stop();
  rmSync(folder, { recursive: true });
});

const silent = pino({ level: 'silent' });
const messages = () => received.filter((text) => text.includes('=') && !text.startsWith('BARRIER'));

it('notifies systemd of readiness, of liveness within each watchdog interval, and of the stop', async () => {
  const env = { NOTIFY_SOCKET: join(folder, 'socket'), WATCHDOG_USEC: '20000', WATCHDOG_PID: String(process.pid) };
  const manager = findServiceManager(env, silent)!;
  await manager.ready();
  await expect.poll(() => messages().filter((text) => text === 'WATCHDOG=1').length).toBeGreaterThan(1);
  expect(messages()[0]).toBe('READY=1');
  await manager.stopping();
  await expect.poll(messages).toContain('STOPPING=1');
});

it('leaves the watchdog of another process to that process', async () => {
  const every = vi.spyOn(globalThis, 'setInterval');
  const env = { NOTIFY_SOCKET: join(folder, 'socket'), WATCHDOG_USEC: '20000', WATCHDOG_PID: '1' };
  await findServiceManager(env, silent)!.ready();
  expect(every).not.toHaveBeenCalled();
  every.mockRestore();
});

it('does nothing when no service manager waits, and logs a message that cannot be sent', async () => {
  expect(findServiceManager({}, silent)).toBeNull();
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  await findServiceManager({ NOTIFY_SOCKET: join(folder, 'missing') }, log)!.ready();
  expect(lines.join('')).toContain('cannot notify systemd');
});
