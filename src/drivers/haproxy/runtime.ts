/**
 * HAProxy's sockets. A connection takes one line of commands joined by `;`, answers them all and closes, so many
 * commands cost one round trip; a line must fit into one of HAProxy's buffers.
 *
 * Answers are only told apart by blank lines, of which HAProxy is not sparing, so nothing is concluded from the answer
 * to a change: who changes something reads the state afterwards.
 *
 * How it fails: a retryable DriverError when the socket is not there, says nothing for some seconds, or closes early.
 */
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { DriverError } from '../driver.ts';

const LONGEST_LINE = 12_000;
const PATIENCE_MS = 10_000;
const AWAY_MS = 2_000;
const AWAY_POLL_MS = 5;

export type Ask = (commands: string[]) => Promise<string>;

export function runtimeSocket(path: string, prefix = ''): Ask {
  return async (commands) => {
    const answers: string[] = [];
    for (const line of linesOf(commands)) answers.push(await askOnce(path, `${prefix}${line}\n`));
    return answers.join('');
  };
}

/**
 * The master's socket is away while it begins anew with a reload, some ten milliseconds. Only for what may be said twice.
 */
export function patiently(ask: Ask): Ask {
  return async (commands) => {
    const giveUp = Date.now() + AWAY_MS;
    for (;;) {
      try {
        return await ask(commands);
      } catch (err) {
        if (Date.now() > giveUp || !isAway(err)) throw err;
        await sleep(AWAY_POLL_MS);
      }
    }
  };
}

function isAway(err: unknown): boolean {
  const { code } = ((err as DriverError).cause ?? {}) as NodeJS.ErrnoException;
  return ['ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE'].includes(code ?? '');
}

export function linesOf(commands: string[]): string[] {
  const lines: string[] = [];
  let line = '';
  for (const command of commands) {
    if (line !== '' && line.length + command.length > LONGEST_LINE) {
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
      reject(noAnswer(`HAProxy's socket ${path}: ${cause.message}`, cause));
    };
    socket.setTimeout(PATIENCE_MS, () => fail(new Error('no answer')));
    socket.on('error', fail);
    socket.on('data', (part) => parts.push(part));
    socket.on('end', () => {
      socket.destroy();
      resolve(Buffer.concat(parts).toString('utf8'));
    });
    socket.end(line);
  });
}

export function noAnswer(message: string, cause?: unknown): DriverError {
  return new DriverError(message, {
    customerMessage: 'The load balancer does not answer just now.',
    retryable: true,
    cause,
  });
}
