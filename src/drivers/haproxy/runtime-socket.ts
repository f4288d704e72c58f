/**
 * The runtime sockets of HAProxy. A connection sends one line of commands joined by `;` and gets all responses. Many
 * commands therefore cost one round trip. A line must fit into a buffer of HAProxy.
 *
 * Responses are separated by blank lines, which they may contain as well. Callers therefore ignore the response to a change
 * and read the state afterwards.
 *
 * Failure modes: a retryable DriverError if the socket is missing, does not respond in time, or closes early.
 */
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DriverError } from '../driver.ts';
import { proxyUnavailable } from './errors.ts';

const MAX_LINE_LENGTH = 12_000;
const TIMEOUT_MS = 10_000;
const RELOAD_MS = 2_000;
const RETRY_MS = 5;

/** Sends commands in order and returns the concatenated responses. @throws DriverError, retryable */
export type Ask = (commands: string[]) => Promise<string>;

/** `prefix`: precedes each line, such as `@1;`, by which the master passes a line to a worker. */
export function runtimeSocket(path: string, prefix = ''): Ask {
  return async (commands) => {
    const answers: string[] = [];
    for (const line of linesOf(commands)) answers.push(await askOnce(path, `${prefix}${line}\n`));
    return answers.join('');
  };
}

/** Retries while the master restarts for a reload, about ten milliseconds. Only for idempotent commands. */
export function retrying(ask: Ask): Ask {
  return async (commands) => {
    const giveUp = performance.now() + RELOAD_MS;
    for (;;) {
      try {
        return await ask(commands);
      } catch (err) {
        if (performance.now() > giveUp || !isRestarting(err)) throw err;
        await sleep(RETRY_MS);
      }
    }
  };
}

function isRestarting(err: unknown): boolean {
  return ['ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE'].includes(codeOf(err));
}

/** Whether a socket does not exist. */
export function isMissing(err: unknown): boolean {
  return codeOf(err) === 'ENOENT';
}

function codeOf(err: unknown): string {
  return ((err as DriverError).cause as NodeJS.ErrnoException | undefined)?.code ?? '';
}

/** Joins commands to as few lines as fit into a buffer of HAProxy. */
export function linesOf(commands: string[]): string[] {
  const lines: string[] = [];
  let line = '';
  for (const command of commands) {
    if (line !== '' && line.length + command.length > MAX_LINE_LENGTH) {
      lines.push(line);
      line = '';
    }
    line = line === '' ? command : `${line};${command}`;
  }
  return line === '' ? lines : [...lines, line];
}

function askOnce(path: string, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket = createConnection({ path, allowHalfOpen: true });
    const fail = (cause: Error) => {
      socket.destroy();
      reject(proxyUnavailable(`HAProxy socket ${path}: ${cause.message}`, cause));
    };
    socket.setTimeout(TIMEOUT_MS, () => fail(new Error('timeout')));
    socket.on('error', fail);
    socket.on('data', (part) => parts.push(part));
    socket.on('end', () => {
      socket.destroy();
      resolve(Buffer.concat(parts).toString('utf8'));
    });
    socket.end(line);
  });
}
